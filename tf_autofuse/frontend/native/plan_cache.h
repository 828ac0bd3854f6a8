// The plans of one node, by kernel and input dims.
//
// The first plans stay as long as the node does, so that the hot path compares the dims with the last plan's
// and nothing else: no lock, no count of references. A node that sees more shapes than that keeps the latest
// of the others under a lock.
#ifndef TF_AUTOFUSE_NATIVE_PLAN_CACHE_H_
#define TF_AUTOFUSE_NATIVE_PLAN_CACHE_H_

#include <atomic>
#include <memory>
#include <mutex>

#include "plan.h"

namespace autofuse {

// A plan, and what keeps it alive while it is used where the cache may drop it.
struct PlanRef {
  const Plan* plan = nullptr;
  std::shared_ptr<const Plan> hold;
};

class PlanCache {
 public:
  static constexpr int kKept = 64;
  static constexpr int kPassing = 8;

  PlanCache() = default;
  ~PlanCache() {
    for (const Kept* kept = first_.load(); kept != nullptr;) {
      const Kept* next = kept->next;
      delete kept;
      kept = next;
    }
  }
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // The plan used last, of whichever kernel; null: none yet.
  const Plan* last() const { return last_.load(std::memory_order_acquire); }

  PlanRef Find(const Kernel* kernel, const Dims& dims) {
    const tensorflow::uint64 hash = HashDims(dims);
    for (const Kept* kept = first_.load(std::memory_order_acquire); kept != nullptr; kept = kept->next) {
      if (!Same(*kept->plan, kernel, dims, hash)) continue;
      last_.store(kept->plan.get(), std::memory_order_release);
      return {kept->plan.get(), nullptr};
    }
    if (kept_count_.load(std::memory_order_acquire) < kKept) return {};
    std::lock_guard<std::mutex> lock(mu_);
    for (Passing& slot : passing_) {
      if (slot.plan == nullptr || !Same(*slot.plan, kernel, dims, hash)) continue;
      slot.used = ++clock_;
      return {slot.plan.get(), slot.plan};
    }
    return {};
  }

  // Where another thread was faster, the other's plan stays and this one serves its own call.
  PlanRef Add(std::shared_ptr<const Plan> plan) {
    std::shared_ptr<const Plan> dropped;  // destroyed after the lock
    std::lock_guard<std::mutex> lock(mu_);
    for (const Kept* kept = first_.load(); kept != nullptr; kept = kept->next) {
      if (Same(*kept->plan, plan->kernel, plan->in_dims, plan->hash)) return {plan.get(), plan};
    }
    const int count = kept_count_.load();
    if (count < kKept) {
      first_.store(new Kept{plan, first_.load()}, std::memory_order_release);
      kept_count_.store(count + 1, std::memory_order_release);
      last_.store(plan.get(), std::memory_order_release);
      return {plan.get(), nullptr};
    }
    Passing* oldest = &passing_[0];
    for (Passing& slot : passing_) {
      if (slot.plan != nullptr && Same(*slot.plan, plan->kernel, plan->in_dims, plan->hash)) {
        return {plan.get(), plan};
      }
      if (slot.used < oldest->used) oldest = &slot;
    }
    dropped = std::move(oldest->plan);
    oldest->plan = plan;
    oldest->used = ++clock_;
    return {plan.get(), plan};
  }

 private:
  struct Kept {
    std::shared_ptr<const Plan> plan;
    const Kept* next;
  };
  struct Passing {
    std::shared_ptr<const Plan> plan;
    tensorflow::uint64 used = 0;
  };

  static bool Same(const Plan& plan, const Kernel* kernel, const Dims& dims, tensorflow::uint64 hash) {
    return plan.hash == hash && plan.kernel == kernel && plan.in_dims == dims;
  }

  std::atomic<const Plan*> last_{nullptr};  // one of the kept
  std::atomic<const Kept*> first_{nullptr};
  std::atomic<int> kept_count_{0};
  std::mutex mu_;  // guards changes of the list, and the rest
  Passing passing_[kPassing];
  tensorflow::uint64 clock_ = 0;
};

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_PLAN_CACHE_H_
