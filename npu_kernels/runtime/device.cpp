#include "device.h"

#include <pthread.h>

#include <algorithm>

namespace autofuse_npu {

namespace {

// More than so many make no copy faster.
constexpr size_t kMostStreams = 8;
constexpr char kForked[] = "the process has forked since the NPU was opened; start workers by spawn";

std::atomic<bool> forked{false};

std::mutex devices_mu;
// Never destroyed: tensors may outlive main().
auto* devices = new std::map<std::pair<std::string, int32_t>, Device*>;

void KeepFirst(bool* ok, AutofuseNpuError* first, bool now, const AutofuseNpuError& error) {
  if (*ok && !now) *first = error;
  *ok = *ok && now;
}

}  // namespace

bool Forked() { return forked.load(std::memory_order_relaxed); }

Device* Device::Open(const char* library, int32_t number, AutofuseNpuError* error) {
  if (Forked()) {
    SetError(error, "open", -1, kForked);
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(devices_mu);
  Device*& device = (*devices)[{library, number}];
  if (device != nullptr && device->Unusable() == nullptr) return device;
  std::unique_ptr<Device> made(new Device(number));
  if (!made->Begin(library, error)) return nullptr;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forked = true; });
  (void)registered;
  device = made.release();
  return device;
}

bool Device::Begin(const char* library, AutofuseNpuError* error) {
  if (!acl_.Load(library, error)) return false;
  const int code = acl_.aclInit(nullptr);
  // Whoever else has initialised ACL in this process finalises it.
  if (code != kAlreadyInitialized && !acl_.Ok("aclInit", code, error)) return false;
  owns_init_ = code == 0;
  if (!acl_.Ok("aclrtSetDevice", acl_.aclrtSetDevice(device_), error)) {
    if (owns_init_) acl_.aclFinalize();
    return false;
  }
  open_ = true;
  return true;
}

const char* Device::Unusable() const {
  if (Forked()) return kForked;
  return open_.load(std::memory_order_acquire) ? nullptr : "the NPU has been closed";
}

Device::Entered::Entered(Device* device, AutofuseNpuError* error) {
  const char* reason = device->Unusable();
  if (reason == nullptr) {
    life_ = std::shared_lock<std::shared_mutex>(device->life_);
    reason = device->Unusable();
  }
  if (reason != nullptr) {
    SetError(error, "enter", -1, reason);
    return;
  }
  // Each thread binds the device; another library may have bound another one meanwhile.
  ok_ = device->acl_.Ok("aclrtSetDevice", device->acl_.aclrtSetDevice(device->device_), error);
}

PieceRef Device::Take(Pool* pool, uint64_t bytes, const Pool::Allocate& allocate) {
  void* address = pool->Take(bytes, allocate);
  if (address == nullptr) {
    AutofuseNpuError ignored;
    WaitForAll();
    if (GiveBackKept(&ignored)) address = pool->Take(bytes, allocate);
  }
  return address == nullptr ? nullptr : std::make_shared<Piece>(pool, address, bytes);
}

PieceRef Device::TakeMemory(uint64_t bytes, AutofuseNpuError* error) {
  return Take(&memory_, bytes, [&](void** address, uint64_t capacity) {
    return acl_.Ok("aclrtMalloc", acl_.aclrtMalloc(address, capacity, kHugePagesFirst), error);
  });
}

PieceRef Device::TakeHostMemory(uint64_t bytes, AutofuseNpuError* error) {
  return Take(&host_memory_, bytes, [&](void** address, uint64_t capacity) {
    return acl_.Ok("aclrtMallocHost", acl_.aclrtMallocHost(address, capacity), error);
  });
}

Pool::Free Device::FreeBy(const char* call, int (*function)(void*), bool* ok, AutofuseNpuError* error) const {
  return [=](void* address) {
    AutofuseNpuError one;
    KeepFirst(ok, error, acl_.Ok(call, function(address), &one), one);
  };
}

bool Device::GiveBackKept(AutofuseNpuError* error) {
  bool ok = true;
  memory_.Trim(FreeBy("aclrtFree", acl_.aclrtFree, &ok, error));
  host_memory_.Trim(FreeBy("aclrtFreeHost", acl_.aclrtFreeHost, &ok, error));
  return ok;
}

bool Device::Trim(AutofuseNpuError* error) {
  Entered entered(this, error);
  return entered && GiveBackKept(error);
}

StreamRef Device::TakeStream(AutofuseNpuError* error) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = idle_.size(); i-- > 0;) {
      std::lock_guard<std::mutex> its(idle_[i]->mu);
      // What nobody has a tensor of is not waited for by anybody: new work may as well come behind it.
      const auto& pending = idle_[i]->pending;
      const bool awaited = std::any_of(pending.begin(), pending.end(),
                                       [](const QueuedRef& queued) { return queued.use_count() > 1; });
      if (awaited && streams_.size() < kMostStreams) continue;
      StreamRef found = idle_[i];
      idle_.erase(idle_.begin() + i);
      return found;
    }
  }
  auto made = std::make_shared<Stream>();
  if (!acl_.Ok("aclrtCreateStream", acl_.aclrtCreateStream(&made->handle), error)) return nullptr;
  std::lock_guard<std::mutex> lock(mu_);
  streams_.push_back(made);
  return made;
}

void Device::GiveStream(const StreamRef& stream) {
  std::lock_guard<std::mutex> lock(mu_);
  std::lock_guard<std::mutex> its(stream->mu);
  if (!stream->failed) idle_.push_back(stream);
}

bool Device::Wait(Stream* stream, AutofuseNpuError* error) {
  uint64_t target = 0;
  {
    std::lock_guard<std::mutex> lock(stream->mu);
    if (stream->failed) {
      *error = stream->error;
      return false;
    }
    if (stream->pending.empty()) return true;
    target = stream->pending.back()->number;
    ++stream->waiting;
  }
  AutofuseNpuError now;
  const bool ok = acl_.Ok("aclrtSynchronizeStream", acl_.aclrtSynchronizeStream(stream->handle), &now);
  std::vector<PieceRef> lost;
  {
    std::lock_guard<std::mutex> lock(stream->mu);
    --stream->waiting;
    if (!ok && !stream->failed) Fail(stream, now, &lost);
    if (!stream->failed) {
      while (!stream->pending.empty() && stream->pending.front()->number <= target) {
        Queued& queued = *stream->pending.front();
        for (const PieceRef& piece : queued.held) stream->pending_bytes -= piece->capacity();
        queued.held.clear();
        queued.state.store(State::kSettled, std::memory_order_release);
        stream->pending.pop_front();
      }
      return true;
    }
    *error = stream->error;
    // Nobody uses the handle of a failed stream any more but those who wait for it.
    if (stream->waiting == 0) EndStream(stream, &now);
  }
  std::lock_guard<std::mutex> lock(mu_);
  const auto is_it = [stream](const StreamRef& other) { return other.get() == stream; };
  idle_.erase(std::remove_if(idle_.begin(), idle_.end(), is_it), idle_.end());
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(), is_it), streams_.end());
  lost_.insert(lost_.end(), lost.begin(), lost.end());
  return false;
}

// With the stream's mu held. `lost`: memory that the stream may still use.
void Device::Fail(Stream* stream, const AutofuseNpuError& error, std::vector<PieceRef>* lost) {
  stream->failed = true;
  stream->error = error;
  const bool idle = acl_.aclrtSynchronizeStream(stream->handle) == 0;
  for (const QueuedRef& queued : stream->pending) {
    queued->state.store(State::kLost, std::memory_order_release);
    if (!idle) lost->insert(lost->end(), queued->held.begin(), queued->held.end());
    queued->held.clear();
  }
  stream->pending.clear();
  stream->pending_bytes = 0;
}

// With the stream's mu held.
bool Device::EndStream(Stream* stream, AutofuseNpuError* error) {
  void* handle = stream->handle;
  stream->handle = nullptr;
  return handle == nullptr || acl_.Ok("aclrtDestroyStream", acl_.aclrtDestroyStream(handle), error);
}

void Device::WaitForAll() {
  AutofuseNpuError ignored;  // who reads what a stream makes is told
  for (const StreamRef& stream : Streams()) Wait(stream.get(), &ignored);
}

std::vector<StreamRef> Device::Streams() {
  std::lock_guard<std::mutex> lock(mu_);
  return streams_;
}

bool Device::Function(const char* binary, const char* name, const void** function, AutofuseNpuError* error) {
  Entered entered(this, error);
  if (!entered) return false;
  std::lock_guard<std::mutex> lock(mu_);
  void*& found = functions_[{binary, name}];
  if (found == nullptr) {
    void*& loaded = binaries_[binary];
    if (loaded == nullptr &&
        !acl_.Ok("aclrtBinaryLoadFromFile", acl_.aclrtBinaryLoadFromFile(binary, nullptr, &loaded), error)) {
      loaded = nullptr;
      return false;
    }
    if (!acl_.Ok("aclrtBinaryGetFunction", acl_.aclrtBinaryGetFunction(loaded, name, &found), error)) {
      found = nullptr;
      return false;
    }
  }
  *function = found;
  return true;
}

void Device::Use(AutofuseNpuUse* use) {
  *use = {};
  if (Unusable() != nullptr) return;  // after a fork no lock may be touched
  std::shared_lock<std::shared_mutex> life(life_);
  if (Unusable() != nullptr) return;
  uint64_t host_peak;
  memory_.Use(&use->used, &use->kept, &use->peak);
  host_memory_.Use(&use->host_used, &use->host_kept, &host_peak);
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (const PieceRef& piece : lost_) use->lost += piece->capacity();
  }
  for (const StreamRef& stream : Streams()) {
    std::lock_guard<std::mutex> lock(stream->mu);
    use->streams += stream->failed ? 0 : 1;
    use->pending += stream->pending.size();
  }
}

bool Device::Close(AutofuseNpuError* error) {
  if (Forked() || !open_.exchange(false)) return true;
  std::unique_lock<std::shared_mutex> life(life_);
  AutofuseNpuError one;
  bool ok = acl_.Ok("aclrtSetDevice", acl_.aclrtSetDevice(device_), error);
  for (const StreamRef& stream : Streams()) {
    if (!stream->failed) KeepFirst(&ok, error, Wait(stream.get(), &one), one);
    std::lock_guard<std::mutex> lock(stream->mu);
    stream->failed = true;
    SetError(&stream->error, "enter", -1, "the NPU has been closed");
    KeepFirst(&ok, error, EndStream(stream.get(), &one), one);
  }
  streams_.clear();
  idle_.clear();
  for (auto& binary : binaries_) {
    if (binary.second == nullptr) continue;
    const int code = acl_.aclrtBinaryUnLoad(binary.second);
    KeepFirst(&ok, error, acl_.Ok("aclrtBinaryUnLoad", code, &one), one);
  }
  memory_.Drain(FreeBy("aclrtFree", acl_.aclrtFree, &ok, error));
  host_memory_.Drain(FreeBy("aclrtFreeHost", acl_.aclrtFreeHost, &ok, error));
  lost_.clear();
  KeepFirst(&ok, error, acl_.Ok("aclrtResetDevice", acl_.aclrtResetDevice(device_), &one), one);
  if (owns_init_) KeepFirst(&ok, error, acl_.Ok("aclFinalize", acl_.aclFinalize(), &one), one);
  return ok;
}

}  // namespace autofuse_npu
