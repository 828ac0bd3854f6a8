#include "resident.h"

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/lib/core/errors.h"

namespace autofuse {

using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;

Status Lineage::Compute(OpKernelContext* ctx, int index, Tensor* result) {
  if (ctx == nullptr) return tensorflow::errors::Unavailable("the values were lost with the NPU's stream");
  std::lock_guard<std::mutex> lock(mu_);
  if (results_.empty()) {
    std::vector<Tensor> arguments(inputs_.size()), results;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].value == nullptr) {
        arguments[i] = inputs_[i].tensor;
      } else {
        TF_RETURN_IF_ERROR(inputs_[i].value->Host(ctx, &arguments[i]));
      }
    }
    TF_RETURN_IF_ERROR(fallback_->Run(ctx, arguments, &results));
    results_ = std::move(results);
    inputs_.clear();
  }
  if (index >= static_cast<int>(results_.size())) {
    return tensorflow::errors::Internal("the original ops gave ", results_.size(), " results");
  }
  *result = results_[index];
  return Status::OK();
}

Status ResidentValue::Host(OpKernelContext* ctx, Tensor* result) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!has_host_) {
    // Not from the executor's allocator: the tensor may outlive the step.
    Tensor host(type, shape);
    AutofuseNpuError error = {};
    const int32_t code =
        npu_->autofuse_npu_read(device_, tensorflow::DMAHelper::base(&host), host.TotalBytes(), &error);
    if (code != AUTOFUSE_NPU_DONE) {
      if (lineage_ == nullptr) return tensorflow::errors::Internal("tf_autofuse: ", NpuErrorText(error));
      TF_RETURN_IF_ERROR(lineage_->Compute(ctx, index_, &host));
    }
    host_ = host;
    has_host_ = true;
    lineage_ = nullptr;
  }
  *result = host_;
  return Status::OK();
}

void ResidentValue::Settle() {
  std::shared_ptr<Lineage> dropped;  // destroyed after the lock
  std::lock_guard<std::mutex> lock(mu_);
  if (lineage_ != nullptr && npu_->autofuse_npu_settled(device_)) dropped.swap(lineage_);
}

std::string Resident::DebugString() const {
  return value == nullptr ? "Resident<nothing>" : "Resident<" + value->shape.DebugString() + ">";
}

void Resident::Encode(tensorflow::VariantTensorData* data) const {
  data->set_type_name(TypeName());
  Tensor host;
  if (value != nullptr && value->Host(nullptr, &host).ok()) *data->add_tensors() = host;
}

bool Resident::Decode(tensorflow::VariantTensorData data) {
  if (data.tensors_size() != 1) return false;
  value = std::make_shared<ResidentValue>(data.tensors(0));
  return true;
}

REGISTER_UNARY_VARIANT_DECODE_FUNCTION(Resident, "tf_autofuse::Resident");

Status ResidentOf(const Tensor& tensor, ResidentRef* value) {
  const Resident* held = tensor.dtype() == tensorflow::DT_VARIANT && tensor.dims() == 0
                             ? tensor.scalar<tensorflow::Variant>()().get<Resident>()
                             : nullptr;
  if (held == nullptr || held->value == nullptr) {
    return tensorflow::errors::Internal("tf_autofuse: an input is no tensor of another fused op");
  }
  *value = held->value;
  return Status::OK();
}

Status SetResident(OpKernelContext* ctx, int index, ResidentRef value) {
  Tensor* output = nullptr;
  TF_RETURN_IF_ERROR(ctx->allocate_output(index, tensorflow::TensorShape({}), &output));
  output->scalar<tensorflow::Variant>()() = Resident{std::move(value)};
  return Status::OK();
}

}  // namespace autofuse
