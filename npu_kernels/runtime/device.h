// One device: its pools of memory, its streams, its binaries.
//
// What a run queues on a stream may be done at any later time, so the pieces of memory that it uses belong to
// the stream (`Queued`) until somebody has waited for that run; only then are they used again. A wait that
// fails loses the values of every run that was still pending there (State::kLost) and ends the stream.
//
// Locks, outermost first: life_ (shared by every call, exclusive while closing), mu_, a stream's mu, a
// pool's.
#ifndef AUTOFUSE_NPU_DEVICE_H_
#define AUTOFUSE_NPU_DEVICE_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "acl_api.h"
#include "pool.h"

namespace autofuse_npu {

// Whether this process is the child of one that had opened a device.
bool Forked();

class Piece {
 public:
  Piece(Pool* pool, void* address, uint64_t bytes) : pool_(pool), address_(address), bytes_(bytes) {}
  ~Piece() {
    // A forked child's locks may be held by threads that it does not have.
    if (!Forked()) pool_->Give(address_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  char* address() const { return static_cast<char*>(address_); }
  uint64_t capacity() const { return Pool::CapacityFor(bytes_); }

 private:
  Pool* const pool_;
  void* const address_;
  const uint64_t bytes_;
};
using PieceRef = std::shared_ptr<Piece>;

enum class State { kPending, kSettled, kLost };

struct Queued {
  uint64_t number = 0;
  std::vector<PieceRef> held;  // until it is no longer pending; tensors that it makes have theirs as well
  std::atomic<State> state{State::kPending};
};
using QueuedRef = std::shared_ptr<Queued>;

struct Stream {
  std::mutex mu;  // guards the rest
  void* handle = nullptr;
  int waiting = 0;  // threads in a wait for the handle
  bool failed = false;
  AutofuseNpuError error = {};
  uint64_t last_number = 0;
  uint64_t pending_bytes = 0;
  std::deque<QueuedRef> pending;

  // With mu held: from here on the stream may use the memory.
  void Add(const QueuedRef& queued) {
    queued->number = ++last_number;
    for (const PieceRef& piece : queued->held) pending_bytes += piece->capacity();
    pending.push_back(queued);
  }
};
using StreamRef = std::shared_ptr<Stream>;

class Device {
 public:
  // Null: `error` says why. The process's own of this library and device.
  static Device* Open(const char* library, int32_t device, AutofuseNpuError* error);

  bool Close(AutofuseNpuError* error);
  const char* Unusable() const;
  bool Function(const char* binary, const char* name, const void** function, AutofuseNpuError* error);
  void Use(AutofuseNpuUse* use);
  bool Trim(AutofuseNpuError* error);

  // Held during a call: the device stays open and is bound to this thread.
  class Entered {
   public:
    Entered(Device* device, AutofuseNpuError* error);
    explicit operator bool() const { return ok_; }

   private:
    std::shared_lock<std::shared_mutex> life_;
    bool ok_ = false;
  };

  // The rest is called by who has Entered.
  const AclApi& acl() const { return acl_; }
  // Null: `error` says why. Before it gives up everything that is kept goes back to the device.
  PieceRef TakeMemory(uint64_t bytes, AutofuseNpuError* error);
  PieceRef TakeHostMemory(uint64_t bytes, AutofuseNpuError* error);
  // A stream for new work, one with nothing pending if there is; null: `error` says why.
  StreamRef TakeStream(AutofuseNpuError* error);
  void GiveStream(const StreamRef& stream);
  // Until all that has been queued up to now is done. False: `error`, and the stream has failed.
  bool Wait(Stream* stream, AutofuseNpuError* error);

 private:
  Device(int32_t device) : device_(device) {}
  bool Begin(const char* library, AutofuseNpuError* error);
  PieceRef Take(Pool* pool, uint64_t bytes, const Pool::Allocate& allocate);
  bool GiveBackKept(AutofuseNpuError* error);
  // For a pool: gives memory back by this call of ACL; the first failure goes to `ok` and `error`.
  Pool::Free FreeBy(const char* call, int (*function)(void*), bool* ok, AutofuseNpuError* error) const;
  void WaitForAll();
  void Fail(Stream* stream, const AutofuseNpuError& error, std::vector<PieceRef>* lost);
  std::vector<StreamRef> Streams();
  bool EndStream(Stream* stream, AutofuseNpuError* error);

  const int32_t device_;
  AclApi acl_;
  bool owns_init_ = false;
  std::atomic<bool> open_{false};
  std::shared_mutex life_;
  Pool memory_, host_memory_;
  std::mutex mu_;  // guards the rest
  std::vector<StreamRef> streams_, idle_;
  std::map<std::string, void*> binaries_;
  std::map<std::pair<std::string, std::string>, void*> functions_;
  std::vector<PieceRef> lost_;  // of failed streams that may still run
};

}  // namespace autofuse_npu

#endif  // AUTOFUSE_NPU_DEVICE_H_
