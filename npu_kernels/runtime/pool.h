// Memory in pieces of powers of two: taken from the device (or from page-locked host memory) when there is
// none, used again afterwards.
//
// On exit of `Drain` the pool owns nothing, whoever still holds a piece; `Give` of such a piece does nothing.
#ifndef AUTOFUSE_NPU_POOL_H_
#define AUTOFUSE_NPU_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace autofuse_npu {

class Pool {
 public:
  // ACL's own granule of aligned memory; copies need 64.
  static constexpr uint64_t kSmallest = 512;
  using Allocate = std::function<bool(void**, uint64_t)>;
  using Free = std::function<void(void*)>;

  static uint64_t CapacityFor(uint64_t bytes) {
    uint64_t capacity = kSmallest;
    while (capacity < bytes) capacity *= 2;
    return capacity;
  }

  // Null: there is none, `allocate` knows why.
  void* Take(uint64_t bytes, const Allocate& allocate) {
    const uint64_t capacity = CapacityFor(bytes);
    void* address = nullptr;
    {
      std::lock_guard<std::mutex> lock(mu_);
      auto& kept = kept_[capacity];
      if (!kept.empty()) {
        address = kept.back();
        kept.pop_back();
        Count(address, capacity);
        return address;
      }
    }
    if (!allocate(&address, capacity)) return nullptr;
    std::lock_guard<std::mutex> lock(mu_);
    Count(address, capacity);
    return address;
  }

  void Give(void* address) {
    std::lock_guard<std::mutex> lock(mu_);
    const auto found = out_.find(address);
    if (found == out_.end()) return;
    used_ -= found->second;
    kept_[found->second].push_back(address);
    out_.erase(found);
  }

  // Gives what is kept to `free`: it is no longer the pool's, whether that fails or not.
  void Trim(const Free& free) {
    std::map<uint64_t, std::vector<void*>> kept;
    {
      std::lock_guard<std::mutex> lock(mu_);
      kept.swap(kept_);
    }
    for (auto& pieces : kept) {
      for (void* address : pieces.second) free(address);
    }
  }

  // As Trim, with all that is out.
  void Drain(const Free& free) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      for (auto& piece : out_) kept_[piece.second].push_back(piece.first);
      out_.clear();
      used_ = 0;
    }
    Trim(free);
  }

  void Use(uint64_t* used, uint64_t* kept, uint64_t* peak) {
    std::lock_guard<std::mutex> lock(mu_);
    *used = used_;
    *peak = peak_;
    *kept = 0;
    for (auto& pieces : kept_) *kept += pieces.first * pieces.second.size();
  }

 private:
  void Count(void* address, uint64_t capacity) {
    out_[address] = capacity;
    used_ += capacity;
    if (used_ > peak_) peak_ = used_;
  }

  std::mutex mu_;  // guards the rest
  std::map<uint64_t, std::vector<void*>> kept_;
  std::unordered_map<void*, uint64_t> out_;
  uint64_t used_ = 0, peak_ = 0;
};

}  // namespace autofuse_npu

#endif  // AUTOFUSE_NPU_POOL_H_
