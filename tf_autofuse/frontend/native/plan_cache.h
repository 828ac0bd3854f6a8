// The last plans of one node, by the dims of its inputs.
//
// A plan is immutable but for `proven`. Lookups by several threads at once take a spin lock for a few
// comparisons; they allocate nothing. A plan in use lives on after it is dropped.
#ifndef TF_AUTOFUSE_NATIVE_PLAN_CACHE_H_
#define TF_AUTOFUSE_NATIVE_PLAN_CACHE_H_

#include <sched.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernel_registry.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace autofuse {

struct Plan {
  Dims in_dims;
  tensorflow::uint64 hash = 0;
  std::string refused;  // why the kernel is not for these shapes; empty: it is
  std::vector<tensorflow::TensorShape> out_shapes;
  std::vector<uint64_t> gm_bytes;  // inputs, then outputs
  tensorflow::uint64 total_bytes = 0;
  std::vector<tensorflow::uint64> tiling;  // the tiling data in 8-byte words
  uint32_t block_dim = 0;
  uint64_t workspace_bytes = 0;
  // The kernel has run once with this plan without an error. Before that no output takes an input's buffer,
  // so that the original ops can still run on intact inputs.
  mutable std::atomic<bool> proven{false};
};

inline tensorflow::uint64 HashDims(const Dims& dims) {
  tensorflow::uint64 hash = 1469598103934665603ull;  // FNV-1a over the dims
  for (tensorflow::int64 dim : dims) hash = (hash ^ static_cast<tensorflow::uint64>(dim)) * 1099511628211ull;
  return hash;
}

class PlanCache {
 public:
  static constexpr int kSlots = 8;

  std::shared_ptr<const Plan> Find(const Dims& dims, tensorflow::uint64 hash) {
    SpinLock lock(&busy_);
    for (Slot& slot : slots_) {
      if (slot.plan != nullptr && slot.plan->hash == hash && slot.plan->in_dims == dims) {
        slot.used = ++clock_;
        return slot.plan;
      }
    }
    return nullptr;
  }

  // Takes the place of the plan that has not been used for longest. Where another thread was faster, the
  // other's plan stays (returned by the next Find).
  void Add(std::shared_ptr<const Plan> plan) {
    std::shared_ptr<const Plan> dropped;  // destroyed after the lock
    SpinLock lock(&busy_);
    Slot* oldest = &slots_[0];
    for (Slot& slot : slots_) {
      if (slot.plan != nullptr && slot.plan->hash == plan->hash && slot.plan->in_dims == plan->in_dims)
        return;
      if (slot.used < oldest->used) oldest = &slot;
    }
    dropped = std::move(oldest->plan);
    oldest->plan = std::move(plan);
    oldest->used = ++clock_;
  }

  void Clear() {
    SpinLock lock(&busy_);
    for (Slot& slot : slots_) slot = Slot();
  }

 private:
  class SpinLock {
   public:
    explicit SpinLock(std::atomic_flag* busy) : busy_(busy) {
      // The holder may have been descheduled: give way.
      for (int spins = 0; busy_->test_and_set(std::memory_order_acquire); ++spins) {
        if (spins > 100) sched_yield();
      }
    }
    ~SpinLock() { busy_->clear(std::memory_order_release); }

   private:
    std::atomic_flag* const busy_;
  };
  struct Slot {
    std::shared_ptr<const Plan> plan;
    tensorflow::uint64 used = 0;
  };

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Slot slots_[kSlots];
  tensorflow::uint64 clock_ = 0;
};

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_PLAN_CACHE_H_
