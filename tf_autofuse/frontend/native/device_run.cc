#include "device_run.h"

#include <algorithm>
#include <numeric>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/strings/strcat.h"

namespace autofuse {

using tensorflow::DataType;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;

NodePorts::NodePorts(const tensorflow::OpKernel& node, std::vector<int> given)
    : input_types(node.input_types()), output_types(node.output_types()), carries(std::move(given)) {
  if (carries.empty()) {
    carries.resize(output_types.size());
    std::iota(carries.begin(), carries.end(), 0);
  }
  const auto is_resident = [](DataType type) { return type == tensorflow::DT_VARIANT; };
  has_residents = std::any_of(input_types.begin(), input_types.end(), is_resident) ||
                  std::any_of(output_types.begin(), output_types.end(), is_resident);
}

bool NodePorts::Fit(const KernelMeta& meta) const {
  if (meta.input_dtypes.size() != input_types.size() || carries.size() != output_types.size()) return false;
  for (size_t i = 0; i < input_types.size(); ++i) {
    if (!IsResidentInput(i) && input_types[i] != meta.input_dtypes[i]) return false;
  }
  std::vector<bool> carried(meta.output_dtypes.size());
  for (size_t k = 0; k < output_types.size(); ++k) {
    if (carries[k] < 0 || carries[k] >= static_cast<int>(carried.size())) return false;
    if (!IsResidentOutput(k) && output_types[k] != meta.output_dtypes[carries[k]]) return false;
    carried[carries[k]] = true;
  }
  return std::find(carried.begin(), carried.end(), false) == carried.end();
}

Status DeviceInputs::Read(OpKernelContext* ctx, const NodePorts& ports) {
  values.resize(ctx->num_inputs());
  for (int i = 0; i < ctx->num_inputs(); ++i) {
    if (ports.IsResidentInput(i)) TF_RETURN_IF_ERROR(ResidentOf(ctx->input(i), &values[i]));
  }
  return Status::OK();
}

namespace {

// One call's arguments for the NPU runtime.
class Call {
 public:
  Call(OpKernelContext* ctx, const Npu& npu, const NodePorts& ports, const Plan& plan,
       const DeviceInputs& inputs)
      : ctx_(ctx), npu_(npu), ports_(ports), plan_(plan), meta_(plan.kernel->meta), given_(inputs) {}

  int32_t Run(const std::shared_ptr<Fallback>& fallback, AutofuseNpuError* error, Status* status) {
    run_ = {};
    if (plan_.block_dim > 0 && !FindFunction(error)) return AUTOFUSE_NPU_FAILED;
    *status = PlaceOutputs();
    if (!status->ok()) return AUTOFUSE_NPU_FAILED;
    *status = TakeInputs();
    if (!status->ok()) return AUTOFUSE_NPU_FAILED;
    run_.block_dim = plan_.block_dim;
    run_.all_at_once = meta_.all_at_once;
    run_.input_count = inputs_.size();
    run_.output_count = outputs_.size();
    run_.inputs = inputs_.data();
    run_.outputs = outputs_.data();
    run_.tiling = plan_.tiling.data();
    run_.tiling_bytes = 8 * plan_.tiling.size();
    run_.workspace_bytes = plan_.workspace_bytes;
    run_.status_offset = plan_.status_offset;
    const int32_t code = npu_.autofuse_npu_run(npu_.handle, &run_, error);
    if (code != AUTOFUSE_NPU_DONE) return code;
    std::shared_ptr<Lineage> lineage;
    if (!waits_) lineage = std::make_shared<Lineage>(fallback, Sources());
    *status = SetResidents(lineage);
    if (waits_) {
      for (const ResidentRef& value : given_.values) {
        if (value != nullptr) value->Settle();
      }
    }
    return AUTOFUSE_NPU_DONE;
  }

 private:
  // Looked up once for each plan, and again where the device has been opened again.
  bool FindFunction(AutofuseNpuError* error) {
    const Plan::DeviceFunction* known = plan_.function.load(std::memory_order_acquire);
    if (known == nullptr || known->npu != npu_.handle) {
      const std::string name = tensorflow::strings::StrCat(meta_.device_entry, "_", plan_.tiling_key);
      auto* found = new Plan::DeviceFunction{npu_.handle, nullptr};
      if (npu_.autofuse_npu_function(npu_.handle, meta_.device_binary.c_str(), name.c_str(),
                                     &found->function, error) != AUTOFUSE_NPU_DONE) {
        delete found;
        return false;
      }
      // One that another thread may still use stays; there is one for each opening of the device.
      plan_.function.store(found, std::memory_order_release);
      known = found;
    }
    run_.function = known->function;
    return true;
  }

  Status PlaceOutputs() {
    outputs_.resize(plan_.out_shapes.size());
    for (size_t o = 0; o < outputs_.size(); ++o) {
      outputs_[o] = {plan_.gm_bytes[meta_.input_ranks.size() + o], nullptr, 0, nullptr};
    }
    waits_ = plan_.status_offset >= 0;
    for (int k = 0; k < ctx_->num_outputs(); ++k) {
      AutofuseNpuOutput& output = outputs_[ports_.carries[k]];
      if (ports_.IsResidentOutput(k)) {
        output.keep = 1;
        continue;
      }
      Tensor* tensor = nullptr;
      TF_RETURN_IF_ERROR(ctx_->allocate_output(k, plan_.out_shapes[ports_.carries[k]], &tensor));
      output.host = tensorflow::DMAHelper::base(tensor);
      waits_ = waits_ || output.bytes > 0;
    }
    return Status::OK();
  }

  Status TakeInputs() {
    inputs_.resize(ctx_->num_inputs());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      AutofuseNpuInput& input = inputs_[i];
      input = {plan_.gm_bytes[i], nullptr, nullptr, 0, nullptr};
      const ResidentRef& value = given_.values[i];
      if (value != nullptr && value->device() != nullptr) {
        input.device = value->device();
        continue;
      }
      if (meta_.unread[i]) continue;
      Tensor host;
      if (value == nullptr) {
        host = ctx_->input(i);
      } else {
        TF_RETURN_IF_ERROR(value->Host(ctx_, &host));
      }
      input.host = tensorflow::DMAHelper::base(&host);
      // A run that nobody waits for keeps what it needs to be done again; a Resident has its own copy.
      input.keep = !waits_ && value == nullptr ? 1 : 0;
    }
    return Status::OK();
  }

  std::vector<Lineage::Source> Sources() {
    std::vector<Lineage::Source> sources(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (given_.values[i] != nullptr) {
        sources[i].value = given_.values[i];
      } else if (inputs_[i].kept != nullptr) {
        sources[i].value =
            std::make_shared<ResidentValue>(&npu_, inputs_[i].kept, ctx_->input_dtype(i),
                                            ctx_->input(i).shape(), nullptr, 0);
        inputs_[i].kept = nullptr;
      } else {
        sources[i].tensor = ctx_->input(i);  // empty, or read for its shape only
      }
    }
    return sources;
  }

  Status SetResidents(const std::shared_ptr<Lineage>& lineage) {
    std::vector<ResidentRef> values(outputs_.size());
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (outputs_[o].kept == nullptr) continue;
      values[o] = std::make_shared<ResidentValue>(&npu_, outputs_[o].kept, meta_.output_dtypes[o],
                                                  plan_.out_shapes[o], lineage, static_cast<int>(o));
    }
    for (int k = 0; k < ctx_->num_outputs(); ++k) {
      if (ports_.IsResidentOutput(k)) TF_RETURN_IF_ERROR(SetResident(ctx_, k, values[ports_.carries[k]]));
    }
    return Status::OK();
  }

  OpKernelContext* const ctx_;
  const Npu& npu_;
  const NodePorts& ports_;
  const Plan& plan_;
  const KernelMeta& meta_;
  const DeviceInputs& given_;
  AutofuseNpuRun run_ = {};
  std::vector<AutofuseNpuInput> inputs_;
  std::vector<AutofuseNpuOutput> outputs_;
  bool waits_ = false;
};

}  // namespace

int32_t RunOnDevice(OpKernelContext* ctx, const Npu& npu, const NodePorts& ports, const Plan& plan,
                    const DeviceInputs& inputs, const std::shared_ptr<Fallback>& fallback,
                    AutofuseNpuError* error, Status* status) {
  return Call(ctx, npu, ports, plan, inputs).Run(fallback, error, status);
}

Status RunOriginals(OpKernelContext* ctx, const NodePorts& ports, Fallback* fallback) {
  std::vector<Tensor> arguments(ctx->num_inputs()), results;
  for (int i = 0; i < ctx->num_inputs(); ++i) {
    if (!ports.IsResidentInput(i)) {
      arguments[i] = ctx->input(i);
      continue;
    }
    ResidentRef value;
    TF_RETURN_IF_ERROR(ResidentOf(ctx->input(i), &value));
    TF_RETURN_IF_ERROR(value->Host(ctx, &arguments[i]));
  }
  TF_RETURN_IF_ERROR(fallback->Run(ctx, arguments, &results));
  std::vector<ResidentRef> values(results.size());
  for (int k = 0; k < ctx->num_outputs(); ++k) {
    const int o = ports.carries[k];
    if (o < 0 || o >= static_cast<int>(results.size())) {
      return tensorflow::errors::Internal("the original ops of ", ctx->op_kernel().name(), " gave ",
                                          results.size(), " results");
    }
    if (!ports.IsResidentOutput(k)) {
      ctx->set_output(k, results[o]);
      continue;
    }
    if (values[o] == nullptr) values[o] = std::make_shared<ResidentValue>(results[o]);
    TF_RETURN_IF_ERROR(SetResident(ctx, k, values[o]));
  }
  return Status::OK();
}

}  // namespace autofuse
