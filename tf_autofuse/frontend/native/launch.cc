#include "launch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/util/work_sharder.h"

namespace autofuse {

using tensorflow::int64;
using tensorflow::uint32;
using tensorflow::uint64;

namespace {

constexpr size_t kErrorBytes = 1024;
// Claiming costs a contended atomic; a claim should be worth much more.
constexpr int64 kClaimNs = 5000;
// How often the calling thread looks for the others' end before it sleeps: some microseconds.
constexpr int kSpins = 2000;

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

// The blocks of one phase, claimed by whoever has time. The calling thread works too and waits only for
// claimed blocks, so that a pool that is busy elsewhere costs nothing; a helper that comes when all is
// claimed leaves without a look at the launch, which may be gone by then.
class Loop {
 public:
  Loop(const Launch& launch, uint32 first, uint32 last, uint32 chunk)
      : launch_(launch), last_(last), chunk_(chunk), total_(last - first), next_(first) {}

  void Work() {
    for (;;) {
      const uint64 begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= last_) return;
      const uint64 end = std::min<uint64>(begin + chunk_, last_);
      if (!failed_.load(std::memory_order_relaxed)) {
        std::string text;
        const int32_t code = Run(launch_, static_cast<uint32>(begin), static_cast<uint32>(end), &text);
        if (code != kDone) Fail(code, std::move(text));
      }
      const uint64 count = end - begin;
      if (finished_.fetch_add(count, std::memory_order_acq_rel) + count == total_) {
        std::lock_guard<std::mutex> lock(mu_);
        ended_.notify_one();
      }
    }
  }

  int32_t Wait(std::string* error) {
    for (int spin = 0; spin < kSpins && !Ended(); ++spin) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> lock(mu_);
    ended_.wait(lock, [this] { return Ended(); });
    if (code_ != kDone) *error = std::move(error_);
    return code_;
  }

 private:
  bool Ended() const { return finished_.load(std::memory_order_acquire) == total_; }

  void Fail(int32_t code, std::string text) {
    std::lock_guard<std::mutex> lock(mu_);
    failed_.store(true, std::memory_order_relaxed);
    if (code_ == kDone || (code_ == kRefusedValue && code != kRefusedValue)) {
      code_ = code;
      error_ = std::move(text);
    }
  }

  const Launch launch_;
  const uint64 last_, chunk_, total_;
  std::atomic<uint64> next_;
  std::atomic<uint64> finished_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;  // guards the rest
  std::condition_variable ended_;
  int32_t code_ = kDone;
  std::string error_;
};

int32_t RunPhase(tensorflow::thread::ThreadPool* pool, int threads, const Launch& launch, uint32 first,
                 uint32 last, std::string* error) {
  const int64 blocks = static_cast<int64>(last) - first;
  int64 chunk = std::max<int64>(1, blocks / (4 * threads));
  const int64 block_ns = launch.plan->block_ns;
  if (block_ns >= 0) chunk = std::max(chunk, kClaimNs / std::max<int64>(block_ns, 1));
  const int64 claims = (blocks + chunk - 1) / chunk;
  if (claims <= 1) return first == last ? kDone : Run(launch, first, last, error);
  auto loop = std::make_shared<Loop>(launch, first, last, static_cast<uint32>(chunk));
  for (int64 helper = 1; helper < std::min<int64>(threads, claims); ++helper) {
    pool->Schedule([loop] { loop->Work(); });
  }
  loop->Work();
  return loop->Wait(error);
}

}  // namespace

int32_t RunLaunch(tensorflow::OpKernelContext* ctx, const Launch& launch, std::string* error) {
  const Plan& plan = *launch.plan;
  tensorflow::thread::ThreadPool* pool = nullptr;
  int threads = 1;
  if (plan.parallel) {
    const auto& workers = *ctx->device()->tensorflow_cpu_worker_threads();
    pool = workers.workers;
    threads = std::min(workers.num_threads, tensorflow::GetPerThreadMaxParallelism());
  }
  uint32 first = 0;
  for (const uint32 end : plan.phase_ends) {
    const int32_t code = threads > 1 ? RunPhase(pool, threads, launch, first, end, error)
                                     : Run(launch, first, end, error);
    if (code != kDone) return code;
    first = end;
  }
  return kDone;
}

}  // namespace autofuse
