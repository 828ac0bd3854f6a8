#include "helpers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <sched.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include "tensorflow/core/platform/env.h"

namespace autofuse {

namespace {

constexpr int kMostHelpers = 63;
using Clock = std::chrono::steady_clock;

// How long a helper that has worked looks out for more: a launch that comes in time spares waking it, which
// takes 20 to 40 us. Longer than the least only where it was wanted again within the most the last time, and
// then not much longer than its work took.
constexpr std::chrono::microseconds kLeastLookOut(50);
constexpr std::chrono::microseconds kMostLookOut(200);
constexpr int kLookOutShare = 4;
// Looks between two offers of the core to others, and looks of a caller that waits before it sleeps.
constexpr int kLooks = 64;
constexpr int kCallerLooks = 4000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The rounding mode and whether denormals are flushed.
class FloatMode {
 public:
#if defined(__SSE__)
  static FloatMode OfThisThread() { return FloatMode{_mm_getcsr()}; }
  void Set() const { _mm_setcsr(mode_); }

 private:
  explicit FloatMode(unsigned mode) : mode_(mode) {}
  unsigned mode_;
#else
  static FloatMode OfThisThread() {
    FloatMode mode;
    std::fegetenv(&mode.mode_);
    return mode;
  }
  void Set() const { std::fesetenv(&mode_); }

 private:
  std::fenv_t mode_;
#endif
};

class Helper;

// What a caller has offered to one helper.
struct Offer {
  SharedWork* work = nullptr;
  const FloatMode* mode = nullptr;
  Helper* helper = nullptr;
  std::atomic<bool> ended{false};
};

// One thread. A caller makes an offer by putting it where there is none; the thread takes it by putting
// Taken() there, unless the caller has withdrawn it. Nobody touches an offer after its end but the caller.
class Helper {
 public:
  void Start() {
    // Lives as long as the process: helpers may sleep while it ends.
    tensorflow::Env::Default()->StartThread(tensorflow::ThreadOptions(), "autofuse_helper",
                                            [this] { Run(); });
  }

  // Whether the thread is free and has the offer now.
  bool Take(Offer* offer) {
    Offer* none = nullptr;
    if (offered_.load(std::memory_order_relaxed) != nullptr) return false;
    pause_.store(Clock::now() - free_since_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    if (!offered_.compare_exchange_strong(none, offer)) return false;
    if (asleep_.load()) {
      std::lock_guard<std::mutex> lock(mu_);
      wake_.notify_one();
    }
    return true;
  }

  // On return the thread has ended the work or never begins it.
  void Withdraw(Offer* offer) {
    Offer* still = offer;
    if (offered_.compare_exchange_strong(still, nullptr)) return;
    for (int look = 0; look < kCallerLooks; ++look) {
      if (offer->ended.load(std::memory_order_acquire)) return;
      Pause();
    }
    std::unique_lock<std::mutex> lock(mu_);
    waiting_.fetch_add(1);
    end_.wait(lock, [offer] { return offer->ended.load(); });
    waiting_.fetch_sub(1);
  }

 private:
  // Twice the time between its last work and the offer after it; nothing where that was too long. Callers and
  // the thread may read each other's numbers of different launches: they decide nothing but speed.
  Clock::duration LastPause() const {
    const Clock::duration pause = pause_.load(std::memory_order_relaxed);
    if (pause > kMostLookOut) return Clock::duration::zero();
    return std::min<Clock::duration>(2 * pause, kMostLookOut);
  }

  static Offer* Taken() { return reinterpret_cast<Offer*>(1); }

  void Run() {
    Clock::time_point until;
    for (;;) {
      LookOut(until);
      Offer* offer = offered_.load(std::memory_order_acquire);
      if (offer == nullptr || !offered_.compare_exchange_strong(offer, Taken())) continue;
      const Clock::time_point begin = Clock::now();
      offer->mode->Set();
      offer->work->Work();
      offer->ended.store(true);
      const Clock::time_point end = Clock::now();
      free_since_.store(end, std::memory_order_relaxed);
      until = end + std::max<Clock::duration>(kLeastLookOut,
                                              std::min(LastPause(), kLookOutShare * (end - begin)));
      offered_.store(nullptr);
      if (waiting_.load() > 0) {
        std::lock_guard<std::mutex> lock(mu_);
        end_.notify_all();
      }
    }
  }

  // Returns when there was an offer, which may be withdrawn by then.
  void LookOut(Clock::time_point until) {
    while (Clock::now() < until) {
      for (int look = 0; look < kLooks; ++look) {
        if (offered_.load(std::memory_order_relaxed) != nullptr) return;
        Pause();
      }
      sched_yield();
    }
    std::unique_lock<std::mutex> lock(mu_);
    asleep_.store(true);
    wake_.wait(lock, [this] { return offered_.load() != nullptr; });
    asleep_.store(false);
  }

  std::atomic<Offer*> offered_{nullptr};
  std::atomic<Clock::time_point> free_since_{Clock::time_point()};
  std::atomic<Clock::duration> pause_{Clock::duration::max()};
  std::atomic<bool> asleep_{false};
  std::atomic<int> waiting_{0};
  std::mutex mu_;
  std::condition_variable wake_, end_;
};

class Helpers {
 public:
  static Helpers& Global() {
    static Helpers* helpers = new Helpers;
    return *helpers;
  }

  // So many as there are cores beside the caller's, as they are wanted first.
  int AtLeast(int wanted) {
    static const int cores = std::max(1u, std::thread::hardware_concurrency());
    const int most = std::min(kMostHelpers, cores - 1);
    wanted = std::min(wanted, most);
    if (count_.load(std::memory_order_acquire) >= wanted) return wanted;
    std::lock_guard<std::mutex> lock(mu_);
    for (int i = count_.load(); i < wanted; ++i) {
      helpers_[i] = new Helper;
      helpers_[i]->Start();
      count_.store(i + 1, std::memory_order_release);
    }
    return wanted;
  }

  Helper& operator[](int i) { return *helpers_[i]; }
  int count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<int> count_{0};
  std::mutex mu_;
  Helper* helpers_[kMostHelpers];
};

}  // namespace

void WorkTogether(SharedWork* work, int threads) {
  Helpers& helpers = Helpers::Global();
  const int wanted = helpers.AtLeast(threads - 1);
  const int count = helpers.count();
  const FloatMode mode = FloatMode::OfThisThread();
  Offer offers[kMostHelpers];
  int taken = 0;
  for (int i = 0; i < count && taken < wanted; ++i) {
    Offer& offer = offers[taken];
    offer.work = work;
    offer.mode = &mode;
    offer.helper = &helpers[i];
    if (offer.helper->Take(&offer)) ++taken;
  }
  work->Work();
  for (int i = 0; i < taken; ++i) offers[i].helper->Withdraw(&offers[i]);
}

}  // namespace autofuse
