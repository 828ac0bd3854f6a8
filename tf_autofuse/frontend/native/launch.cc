#include "launch.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "helpers.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/util/work_sharder.h"

namespace autofuse {

using tensorflow::int64;
using tensorflow::uint32;
using tensorflow::uint64;

namespace {

constexpr size_t kErrorBytes = 1024;
// Claiming costs a contended atomic; a claim should be worth much more.
constexpr int64 kClaimNs = 3000;

int32_t Run(const Launch& launch, uint32 first, uint32 last, std::string* error) {
  char text[kErrorBytes];
  text[0] = '\0';
  const Plan& plan = *launch.plan;
  const int32_t code =
      launch.kernel->run_blocks(launch.gm, plan.gm_bytes.data(), launch.workspace, plan.tiling.data(),
                                plan.block_dim, first, last, text, sizeof(text));
  if (code == kDone) return code;
  text[sizeof(text) - 1] = '\0';
  *error = text[0] == '\0' ? tensorflow::strings::StrCat("code ", code) : text;
  return code;
}

// The blocks of one phase, claimed by whoever has time: large groups first, at the end small ones, so that
// all threads end at about the same time. The calling thread works too and waits only for claimed blocks:
// threads that are busy elsewhere cost nothing.
class Loop : public SharedWork {
 public:
  Loop(const Launch& launch, uint32 first, uint32 last, uint32 least, int threads)
      : launch_(launch), last_(last), least_(least), share_(2 * threads), next_(first) {}

  void Work() override {
    uint64 begin = next_.load(std::memory_order_relaxed);
    while (begin < last_) {
      const uint64 end = std::min(begin + std::max(least_, (last_ - begin) / share_), last_);
      if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      if (failed_.load(std::memory_order_relaxed)) return;
      std::string text;
      const int32_t code = Run(launch_, static_cast<uint32>(begin), static_cast<uint32>(end), &text);
      if (code != kDone) Fail(code, std::move(text));
      begin = next_.load(std::memory_order_relaxed);
    }
  }

  // After WorkTogether.
  int32_t Result(std::string* error) {
    if (code_ != kDone) *error = std::move(error_);
    return code_;
  }

 private:
  void Fail(int32_t code, std::string text) {
    std::lock_guard<std::mutex> lock(mu_);
    failed_.store(true, std::memory_order_relaxed);
    if (code_ == kDone || (code_ == kRefusedValue && code != kRefusedValue)) {
      code_ = code;
      error_ = std::move(text);
    }
  }

  const Launch launch_;
  const uint64 last_, least_, share_;
  std::atomic<uint64> next_;
  std::atomic<bool> failed_{false};
  std::mutex mu_;  // guards the rest
  int32_t code_ = kDone;
  std::string error_;
};

int32_t RunPhase(int threads, const Launch& launch, uint32 first, uint32 last, std::string* error) {
  const int64 block_ns = launch.plan->block_ns;
  const int64 least = block_ns < 0 ? 1 : std::max<int64>(1, kClaimNs / std::max<int64>(block_ns, 1));
  if (static_cast<int64>(last) - first <= least) {
    return first == last ? kDone : Run(launch, first, last, error);
  }
  Loop loop(launch, first, last, static_cast<uint32>(least), threads);
  WorkTogether(&loop, threads);
  return loop.Result(error);
}

}  // namespace

int32_t RunLaunch(tensorflow::OpKernelContext* ctx, const Launch& launch, std::string* error) {
  const Plan& plan = *launch.plan;
  int threads = 1;
  if (plan.parallel) {
    const auto& workers = *ctx->device()->tensorflow_cpu_worker_threads();
    threads = std::min(workers.num_threads, tensorflow::GetPerThreadMaxParallelism());
  }
  uint32 first = 0;
  for (const uint32 end : plan.phase_ends) {
    const int32_t code = threads > 1 ? RunPhase(threads, launch, first, end, error)
                                     : Run(launch, first, end, error);
    if (code != kDone) return code;
    first = end;
  }
  return kDone;
}

}  // namespace autofuse
