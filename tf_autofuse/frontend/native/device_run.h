// A fused node's call on the NPU.
//
// On entry the node's inputs (tensors, or Residents that earlier fused ops have left on the device) and a
// plan; on exit the outputs are set, or nothing is, and the caller runs the original ops. A call waits for
// the device only where one of its outputs is read on the host, or where the kernel may refuse values.
#ifndef TF_AUTOFUSE_NATIVE_DEVICE_RUN_H_
#define TF_AUTOFUSE_NATIVE_DEVICE_RUN_H_

#include <memory>
#include <vector>

#include "fallback.h"
#include "plan.h"
#include "resident.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace autofuse {

// What a node's inputs and outputs stand for. carries[k]: the kernel's output that the node's output k has;
// several may have the same one, as values on the host and as a Resident.
struct NodePorts {
  tensorflow::DataTypeVector input_types, output_types;
  std::vector<int> carries;
  bool has_residents = false;

  NodePorts(const tensorflow::OpKernel& node, std::vector<int> given);
  bool IsResidentInput(int i) const { return input_types[i] == tensorflow::DT_VARIANT; }
  bool IsResidentOutput(int k) const { return output_types[k] == tensorflow::DT_VARIANT; }
  // Whether the kernel is for these types.
  bool Fit(const KernelMeta& meta) const;
};

// The inputs of one call: values[i] is set where input i is a Resident.
struct DeviceInputs {
  std::vector<ResidentRef> values;

  tensorflow::Status Read(tensorflow::OpKernelContext* ctx, const NodePorts& ports);
  const tensorflow::TensorShape& shape(tensorflow::OpKernelContext* ctx, int i) const {
    return values[i] == nullptr ? ctx->input(i).shape() : values[i]->shape;
  }
};

// One of AUTOFUSE_NPU_*; `*error` where it failed. `*status`: an error of TensorFlow's own (no host memory).
int32_t RunOnDevice(tensorflow::OpKernelContext* ctx, const Npu& npu, const NodePorts& ports,
                    const Plan& plan, const DeviceInputs& inputs, const std::shared_ptr<Fallback>& fallback,
                    AutofuseNpuError* error, tensorflow::Status* status);

// The original ops, from Residents and to Residents.
tensorflow::Status RunOriginals(tensorflow::OpKernelContext* ctx, const NodePorts& ports, Fallback* fallback);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_DEVICE_RUN_H_
