// One run, from the caller's tensors to the caller's tensors, and the library's C functions.
#include "npu_runtime.h"

#include <cstring>

#include "device.h"

using autofuse_npu::Device;
using autofuse_npu::PieceRef;
using autofuse_npu::Queued;
using autofuse_npu::QueuedRef;
using autofuse_npu::SetError;
using autofuse_npu::State;
using autofuse_npu::Stream;
using autofuse_npu::StreamRef;

struct AutofuseNpuTensor {
  Device* device = nullptr;
  PieceRef memory;
  uint64_t bytes = 0;
  StreamRef stream;     // where the values are made
  QueuedRef made_by;
  PieceRef host_copy;   // the values in host memory; null: they are on the device only
};

namespace {

constexpr uint64_t kStatusBytes = 64;
// So much may be queued on one stream without anybody waiting: memory is not used again before that.
constexpr uint64_t kMostPendingBytes = uint64_t{256} << 20;
constexpr size_t kMostPendingRuns = 64;

Device* DeviceOf(AutofuseNpu* npu) { return reinterpret_cast<Device*>(npu); }

bool Lost(const AutofuseNpuTensor& tensor, AutofuseNpuError* error) {
  if (tensor.made_by->state.load(std::memory_order_acquire) != State::kLost) return false;
  std::lock_guard<std::mutex> lock(tensor.stream->mu);
  *error = tensor.stream->error;
  return true;
}

bool Pending(const AutofuseNpuTensor& tensor) {
  return tensor.made_by->state.load(std::memory_order_acquire) == State::kPending;
}

class Run {
 public:
  Run(Device* device, AutofuseNpuRun* run, AutofuseNpuError* error)
      : device_(device), run_(*run), error_(error), queued_(std::make_shared<Queued>()) {}

  int32_t operator()() {
    for (uint32_t i = 0; i < run_.input_count; ++i) run_.inputs[i].kept = nullptr;
    for (uint32_t i = 0; i < run_.output_count; ++i) run_.outputs[i].kept = nullptr;
    if (!PickStream()) return AUTOFUSE_NPU_FAILED;
    const bool ok = Prepare() && Queue();
    // Another run may go on there while this one waits.
    if (taken_) device_->GiveStream(stream_);
    if (!ok) {
      // What has been queued before the failure still uses our memory.
      AutofuseNpuError ignored;
      if (queued_->number != 0) device_->Wait(stream_.get(), &ignored);
      return AUTOFUSE_NPU_FAILED;
    }
    if (waits_ && !device_->Wait(stream_.get(), error_)) return AUTOFUSE_NPU_FAILED;
    if (Refused()) return AUTOFUSE_NPU_REFUSED;
    Finish();
    return AUTOFUSE_NPU_DONE;
  }

 private:
  // The stream on which an input is still being made, so that the kernel comes behind it; else any.
  bool PickStream() {
    for (uint32_t i = 0; i < run_.input_count; ++i) {
      const AutofuseNpuTensor* tensor = run_.inputs[i].device;
      if (tensor == nullptr) continue;
      if (tensor->device != device_) {
        SetError(error_, "run", -1, "an input is on another device, or on one that has been closed");
        return false;
      }
      // In this order: what is no longer pending is settled or lost for good.
      const bool pending = Pending(*tensor);
      if (Lost(*tensor, error_)) return false;
      if (!pending || tensor->stream == stream_) continue;
      if (stream_ == nullptr) {
        stream_ = tensor->stream;
      } else if (!device_->Wait(tensor->stream.get(), error_)) {
        return false;
      }
    }
    if (stream_ != nullptr) return true;
    stream_ = device_->TakeStream(error_);
    taken_ = stream_ != nullptr;
    return taken_;
  }

  PieceRef Memory(uint64_t bytes) {
    PieceRef piece = device_->TakeMemory(bytes, error_);
    if (piece != nullptr) queued_->held.push_back(piece);
    return piece;
  }

  PieceRef HostMemory(uint64_t bytes) {
    PieceRef piece = device_->TakeHostMemory(bytes, error_);
    if (piece != nullptr) queued_->held.push_back(piece);
    return piece;
  }

  struct Copy {
    PieceRef device, host;
    uint64_t bytes = 0, offset = 0;
  };

  bool Upload(const void* values, uint64_t bytes, Copy* copy) {
    copy->bytes = bytes;
    copy->device = Memory(bytes);
    if (copy->device == nullptr) return false;
    if (bytes == 0) return true;
    copy->host = HostMemory(bytes);
    if (copy->host == nullptr) return false;
    std::memcpy(copy->host->address(), values, bytes);
    return true;
  }

  // All memory, and the values in page-locked host memory: copies need it to be asynchronous, and what the
  // caller has may change or die before they are done.
  bool Prepare() {
    inputs_.resize(run_.input_count);
    outputs_.resize(run_.output_count);
    for (uint32_t i = 0; i < run_.input_count; ++i) {
      const AutofuseNpuInput& input = run_.inputs[i];
      if (input.device != nullptr) {
        inputs_[i].device = input.device->memory;
        queued_->held.push_back(input.device->memory);
      } else if (!Upload(input.host, input.host == nullptr ? 0 : input.bytes, &inputs_[i])) {
        return false;
      }
    }
    for (uint32_t i = 0; i < run_.output_count; ++i) {
      const AutofuseNpuOutput& output = run_.outputs[i];
      outputs_[i].device = Memory(output.bytes);
      if (outputs_[i].device == nullptr) return false;
      if (output.host == nullptr || output.bytes == 0) continue;
      outputs_[i].bytes = output.bytes;
      outputs_[i].host = HostMemory(output.bytes);
      if (outputs_[i].host == nullptr) return false;
      waits_ = true;
    }
    if (run_.block_dim == 0) return true;
    workspace_.device = Memory(run_.workspace_bytes);
    if (workspace_.device == nullptr || !Upload(run_.tiling, run_.tiling_bytes, &tiling_)) return false;
    if (run_.status_offset < 0) return true;
    workspace_.offset = run_.status_offset;
    workspace_.bytes = kStatusBytes * run_.block_dim;
    workspace_.host = HostMemory(workspace_.bytes);
    waits_ = true;
    return workspace_.host != nullptr;
  }

  bool Queue() {
    std::lock_guard<std::mutex> lock(stream_->mu);
    if (stream_->failed) {
      *error_ = stream_->error;
      return false;
    }
    // From the first call on the stream may use the memory, whether the others succeed or not.
    stream_->Add(queued_);
    waits_ = waits_ || stream_->pending_bytes > kMostPendingBytes ||
             stream_->pending.size() > kMostPendingRuns;
    for (const Copy& copy : inputs_) {
      if (!ToDevice(copy)) return false;
    }
    if (run_.block_dim > 0 && !(ToDevice(tiling_) && ClearStatus() && Launch() && ToHost(workspace_)))
      return false;
    for (const Copy& copy : outputs_) {
      if (!ToHost(copy)) return false;
    }
    return true;
  }

  bool ToDevice(const Copy& copy) {
    if (copy.host == nullptr) return true;
    return Ok("aclrtMemcpyAsync",
              acl().aclrtMemcpyAsync(copy.device->address(), copy.device->capacity(), copy.host->address(),
                                     copy.bytes, autofuse_npu::kToDevice, stream_->handle));
  }

  bool ToHost(const Copy& copy) {
    if (copy.host == nullptr) return true;
    return Ok("aclrtMemcpyAsync",
              acl().aclrtMemcpyAsync(copy.host->address(), copy.host->capacity(),
                                     copy.device->address() + copy.offset, copy.bytes, autofuse_npu::kToHost,
                                     stream_->handle));
  }

  bool ClearStatus() {
    if (run_.status_offset < 0) return true;
    char* words = workspace_.device->address() + workspace_.offset;
    return Ok("aclrtMemsetAsync", acl().aclrtMemsetAsync(words, workspace_.bytes, 0, workspace_.bytes,
                                                         stream_->handle));
  }

  bool Append(void* arguments, const PieceRef& piece) {
    void* address = piece->address();
    void* place = nullptr;
    return Ok("aclrtKernelArgsAppend",
              acl().aclrtKernelArgsAppend(arguments, &address, sizeof(address), &place));
  }

  // The kernel's arguments are addresses: inputs, outputs, workspace, tiling data.
  bool Launch() {
    void* function = const_cast<void*>(run_.function);
    void* arguments = nullptr;
    if (!Ok("aclrtKernelArgsInit", acl().aclrtKernelArgsInit(function, &arguments))) return false;
    for (const Copy& copy : inputs_) {
      if (!Append(arguments, copy.device)) return false;
    }
    for (const Copy& copy : outputs_) {
      if (!Append(arguments, copy.device)) return false;
    }
    if (!Append(arguments, workspace_.device) || !Append(arguments, tiling_.device)) return false;
    if (!Ok("aclrtKernelArgsFinalize", acl().aclrtKernelArgsFinalize(arguments))) return false;
    autofuse_npu::LaunchAttribute attribute = {autofuse_npu::kScheduleMode,
                                               {autofuse_npu::kAllBlocksAtOnce, 0, 0, 0}};
    autofuse_npu::LaunchConfig config = {&attribute, 1};
    return Ok("aclrtLaunchKernelWithConfig",
              acl().aclrtLaunchKernelWithConfig(function, run_.block_dim, stream_->handle,
                                                run_.all_at_once ? &config : nullptr, arguments, nullptr));
  }

  bool Refused() const {
    if (workspace_.host == nullptr) return false;
    for (uint64_t at = 0; at < workspace_.bytes; at += kStatusBytes) {
      int32_t word;
      std::memcpy(&word, workspace_.host->address() + at, sizeof(word));
      if (word != 0) return true;
    }
    return false;
  }

  void Finish() {
    for (uint32_t i = 0; i < run_.output_count; ++i) {
      AutofuseNpuOutput& output = run_.outputs[i];
      if (outputs_[i].host != nullptr) std::memcpy(output.host, outputs_[i].host->address(), output.bytes);
      if (output.keep) output.kept = Tensor(outputs_[i].device, output.bytes, nullptr);
    }
    for (uint32_t i = 0; i < run_.input_count; ++i) {
      AutofuseNpuInput& input = run_.inputs[i];
      if (input.keep && input.device == nullptr && input.host != nullptr) {
        input.kept = Tensor(inputs_[i].device, input.bytes, inputs_[i].host);
      }
    }
  }

  AutofuseNpuTensor* Tensor(const PieceRef& memory, uint64_t bytes, const PieceRef& host_copy) {
    auto* tensor = new AutofuseNpuTensor;
    tensor->device = device_;
    tensor->memory = memory;
    tensor->bytes = bytes;
    tensor->stream = stream_;
    tensor->made_by = queued_;
    tensor->host_copy = host_copy;
    return tensor;
  }

  const autofuse_npu::AclApi& acl() const { return device_->acl(); }
  bool Ok(const char* call, int code) { return acl().Ok(call, code, error_); }

  Device* const device_;
  const AutofuseNpuRun run_;
  AutofuseNpuError* const error_;
  const QueuedRef queued_;
  StreamRef stream_;
  bool taken_ = false, waits_ = false;
  std::vector<Copy> inputs_, outputs_;
  Copy workspace_, tiling_;
};

bool ReadFromDevice(AutofuseNpuTensor* tensor, void* host, uint64_t bytes, AutofuseNpuError* error) {
  Device* device = tensor->device;
  const bool behind = Pending(*tensor);  // before Lost, as in PickStream
  if (Lost(*tensor, error)) return false;
  const StreamRef stream = behind ? tensor->stream : device->TakeStream(error);
  if (stream == nullptr) return false;
  PieceRef copy = device->TakeHostMemory(bytes, error);
  bool ok = copy != nullptr;
  if (ok) {
    std::lock_guard<std::mutex> lock(stream->mu);
    ok = !stream->failed;
    if (ok) {
      auto queued = std::make_shared<Queued>();
      queued->held = {copy, tensor->memory};
      stream->Add(queued);
      const int code =
          device->acl().aclrtMemcpyAsync(copy->address(), copy->capacity(), tensor->memory->address(), bytes,
                                         autofuse_npu::kToHost, stream->handle);
      ok = device->acl().Ok("aclrtMemcpyAsync", code, error);
    } else {
      *error = stream->error;
    }
  }
  if (!behind) device->GiveStream(stream);
  if (!ok || !device->Wait(stream.get(), error)) return false;
  std::memcpy(host, copy->address(), bytes);
  return true;
}

}  // namespace

#define AUTOFUSE_EXPORT extern "C" __attribute__((visibility("default")))

AUTOFUSE_EXPORT int64_t autofuse_npu_version() { return AUTOFUSE_NPU_VERSION; }

AUTOFUSE_EXPORT AutofuseNpu* autofuse_npu_open(const char* library, int32_t device, AutofuseNpuError* error) {
  return reinterpret_cast<AutofuseNpu*>(Device::Open(library, device, error));
}

AUTOFUSE_EXPORT int32_t autofuse_npu_close(AutofuseNpu* npu, AutofuseNpuError* error) {
  return DeviceOf(npu)->Close(error) ? AUTOFUSE_NPU_DONE : AUTOFUSE_NPU_FAILED;
}

AUTOFUSE_EXPORT const char* autofuse_npu_unusable(const AutofuseNpu* npu) {
  return reinterpret_cast<const Device*>(npu)->Unusable();
}

AUTOFUSE_EXPORT int32_t autofuse_npu_function(AutofuseNpu* npu, const char* binary, const char* name,
                                              const void** function, AutofuseNpuError* error) {
  return DeviceOf(npu)->Function(binary, name, function, error) ? AUTOFUSE_NPU_DONE : AUTOFUSE_NPU_FAILED;
}

AUTOFUSE_EXPORT int32_t autofuse_npu_run(AutofuseNpu* npu, AutofuseNpuRun* run, AutofuseNpuError* error) {
  Device::Entered entered(DeviceOf(npu), error);
  return entered ? Run(DeviceOf(npu), run, error)() : AUTOFUSE_NPU_FAILED;
}

AUTOFUSE_EXPORT int32_t autofuse_npu_read(AutofuseNpuTensor* tensor, void* host, uint64_t bytes,
                                          AutofuseNpuError* error) {
  Device::Entered entered(tensor->device, error);
  if (!entered) return AUTOFUSE_NPU_FAILED;
  if (bytes != tensor->bytes) {
    SetError(error, "read", -1, "the tensor has another size");
    return AUTOFUSE_NPU_FAILED;
  }
  if (bytes == 0) return AUTOFUSE_NPU_DONE;
  if (tensor->host_copy != nullptr) {
    std::memcpy(host, tensor->host_copy->address(), bytes);
    return AUTOFUSE_NPU_DONE;
  }
  return ReadFromDevice(tensor, host, bytes, error) ? AUTOFUSE_NPU_DONE : AUTOFUSE_NPU_FAILED;
}

AUTOFUSE_EXPORT int32_t autofuse_npu_settled(const AutofuseNpuTensor* tensor) {
  return tensor->made_by->state.load(std::memory_order_acquire) == State::kSettled;
}

AUTOFUSE_EXPORT void autofuse_npu_release(AutofuseNpuTensor* tensor) {
  delete tensor;
}

AUTOFUSE_EXPORT void autofuse_npu_get_use(AutofuseNpu* npu, AutofuseNpuUse* use) { DeviceOf(npu)->Use(use); }

AUTOFUSE_EXPORT int32_t autofuse_npu_trim(AutofuseNpu* npu, AutofuseNpuError* error) {
  return DeviceOf(npu)->Trim(error) ? AUTOFUSE_NPU_DONE : AUTOFUSE_NPU_FAILED;
}
