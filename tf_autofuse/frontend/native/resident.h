// Tensors that only go from one fused op to the next and stay on the device in between.
//
// Such an edge of the graph carries a scalar Variant with a Resident in place of the values (keep_on_device.h
// decides which edges), so that nothing which does not know of it can take the host buffer's contents for the
// values: a reader of another kind gets a type error, never a wrong number, and the device memory lives
// exactly as long as TensorFlow holds the tensor. The values may still be in the making, and the work that
// makes them may yet fail: then they are computed again by the original ops (Lineage).
#ifndef TF_AUTOFUSE_NATIVE_RESIDENT_H_
#define TF_AUTOFUSE_NATIVE_RESIDENT_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fallback.h"
#include "npu.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace autofuse {

class ResidentValue;
using ResidentRef = std::shared_ptr<ResidentValue>;

// How the outputs of one run can be computed again: the node's original ops and the inputs as the run had
// them (a snapshot, for the caller's buffers may be written to afterwards).
class Lineage {
 public:
  // An input is `tensor`, or `value` where that is set.
  struct Source {
    tensorflow::Tensor tensor;
    ResidentRef value;
  };

  Lineage(std::shared_ptr<Fallback> fallback, std::vector<Source> inputs)
      : fallback_(std::move(fallback)), inputs_(std::move(inputs)) {}

  // Output `index` of the original ops, which run once, under the context of whoever asks first.
  tensorflow::Status Compute(tensorflow::OpKernelContext* ctx, int index, tensorflow::Tensor* result);

 private:
  const std::shared_ptr<Fallback> fallback_;
  std::mutex mu_;  // guards the rest
  std::vector<Source> inputs_;
  std::vector<tensorflow::Tensor> results_;
};

class ResidentValue {
 public:
  // Takes the reference to `device`. index: of the lineage's output; without a lineage the values are settled
  // or have a copy on the host.
  ResidentValue(const Npu* npu, AutofuseNpuTensor* device, tensorflow::DataType type,
                const tensorflow::TensorShape& shape, std::shared_ptr<Lineage> lineage, int index)
      : type(type), shape(shape), npu_(npu), device_(device), lineage_(std::move(lineage)), index_(index) {}
  explicit ResidentValue(const tensorflow::Tensor& host)
      : type(host.dtype()), shape(host.shape()), has_host_(true), host_(host) {}
  ~ResidentValue() {
    if (device_ != nullptr) npu_->autofuse_npu_release(device_);
  }
  ResidentValue(const ResidentValue&) = delete;
  ResidentValue& operator=(const ResidentValue&) = delete;

  const tensorflow::DataType type;
  const tensorflow::TensorShape shape;

  // The values in device memory; null: they are on the host only.
  AutofuseNpuTensor* device() const { return device_; }
  // The values in host memory: copied there, or computed again where they are lost. Kept for the next caller.
  // ctx: null where nothing can be computed.
  tensorflow::Status Host(tensorflow::OpKernelContext* ctx, tensorflow::Tensor* result);
  // Somebody has waited for a run that reads this: what is needed to compute it again may go.
  void Settle();

 private:
  const Npu* const npu_ = nullptr;
  AutofuseNpuTensor* const device_ = nullptr;
  std::mutex mu_;  // guards the rest
  std::shared_ptr<Lineage> lineage_;
  const int index_ = 0;
  bool has_host_ = false;
  tensorflow::Tensor host_;
};

// What the Variant holds.
struct Resident {
  ResidentRef value;

  std::string TypeName() const { return "tf_autofuse::Resident"; }
  std::string DebugString() const;
  // For whoever writes the tensor down (the debugger): its values.
  void Encode(tensorflow::VariantTensorData* data) const;
  bool Decode(tensorflow::VariantTensorData data);
};

// The value in a scalar Variant tensor. Errors: Internal where it is none.
tensorflow::Status ResidentOf(const tensorflow::Tensor& tensor, ResidentRef* value);

// Output `index` becomes this value.
tensorflow::Status SetResident(tensorflow::OpKernelContext* ctx, int index, ResidentRef value);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_RESIDENT_H_
