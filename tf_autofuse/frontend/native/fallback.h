// Running a region's original ops: the function in the node's attribute `fallback`.
#ifndef TF_AUTOFUSE_NATIVE_FALLBACK_H_
#define TF_AUTOFUSE_NATIVE_FALLBACK_H_

#include <mutex>
#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace autofuse {

class Fallback {
 public:
  explicit Fallback(const tensorflow::NameAttrList& function) : function_(function) {}

  // Runs the function on the calling thread, instantiating it at its first call. All of its ops run inline,
  // so that it can't wait for a pool whose threads wait for it. An error of an op comes back with
  // TensorFlow's code and text. ctx: of the node, or of another one of the same graph.
  tensorflow::Status Run(tensorflow::OpKernelContext* ctx, const std::vector<tensorflow::Tensor>& arguments,
                         std::vector<tensorflow::Tensor>* results);

 private:
  tensorflow::Status Instantiate(tensorflow::FunctionLibraryRuntime* library,
                                 tensorflow::FunctionLibraryRuntime::Handle* handle);

  const tensorflow::NameAttrList function_;
  std::mutex mu_;
  // One node may run under several function libraries (it is part of a function body).
  std::vector<std::pair<tensorflow::FunctionLibraryRuntime*, tensorflow::FunctionLibraryRuntime::Handle>>
      handles_;
};

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_FALLBACK_H_
