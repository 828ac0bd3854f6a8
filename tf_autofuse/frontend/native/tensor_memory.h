// The memory of large tensors, kept when they are freed and handed out again.
//
// Why: malloc gives a large block back to the system when it is freed and gets a new one at the next call, so
// that every call of an op faults in every page of its output: 4096 faults for 16 MB, which may take longer
// than adding two such tensors. Here a freed block stays mapped and serves the next tensor that fits it.
//
// What is kept is bounded. Blocks in use and kept ones together are at most half more than what has been in
// use at one time within the last windows, kept ones are at most the limit, and while no session keeps
// nothing is kept. What goes beyond is unmapped, the longest unused first.
#ifndef TF_AUTOFUSE_NATIVE_TENSOR_MEMORY_H_
#define TF_AUTOFUSE_NATIVE_TENSOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace autofuse {

class TensorMemory {
 public:
  // Tensors below this stay with malloc, which keeps such blocks itself.
  static constexpr size_t kLeast = 64 << 10;
  // Blocks begin at a page.
  static constexpr size_t kPage = 4096;
  // A peak of use counts for one to two windows.
  static constexpr int64_t kWindowSeconds = 5;

  struct Counts {
    uint64_t in_use = 0, kept = 0;    // bytes now
    uint64_t peak = 0;                // bytes in use at one time within the last windows
    uint64_t most = 0;                // bytes mapped at one time, ever
    uint64_t mapped = 0, reused = 0;  // blocks handed out: from the system, from what was kept
    uint64_t spare = 0;               // bytes in use that nobody asked for: blocks larger than their tensor
  };

  // Never destroyed: tensors outlive sessions, and may outlive main().
  static TensorMemory& Global();

  // now(): seconds of a clock that only goes forward.
  explicit TensorMemory(int64_t (*now)()) : now_(now) {}

  // A block of at least so many bytes (not 0); null where the system has none.
  void* Take(size_t bytes);
  // False: not a block of Take's.
  bool Give(void* address);
  // The size of the block, 0: not one of Take's.
  size_t SizeOf(const void* address);

  // A session begins to keep, and ends. SetLimit: the most bytes to keep, for all of them.
  void Begin();
  void End();
  void SetLimit(uint64_t limit);

  Counts counts();

  // Around fork(), so that the child may free what it has inherited.
  void Lock() { mu_.lock(); }
  void Unlock() { mu_.unlock(); }

 private:
  struct Block {
    void* address;
    size_t size;
    size_t spare;  // while in use: beyond what was asked for
    bool kept;
    Block *newer, *older;   // while kept: neighbours by age
    Block *before, *after;  // while kept: neighbours in its class, the newest first
  };
  using Blocks = std::vector<Block*>;

  static constexpr int kSteps = 8;  // classes from a power of two to the next
  static constexpr int kClasses = 64 * kSteps;

  static size_t Rounded(size_t bytes);
  static int ClassOf(size_t size);
  static void Unmap(const Blocks& blocks);

  Block* Find(size_t size) const;
  void Keep(Block* block);
  void Unkeep(Block* block);
  Block* TakeKept(size_t size);
  void* TakeNew(size_t size);
  void SetInUse(uint64_t bytes);
  uint64_t Peak() const;
  Blocks Shrink();
  Blocks KeepAtMost(uint64_t bytes);

  int64_t (*const now_)();
  std::mutex mu_;  // guards the rest
  std::unordered_map<const void*, Block*> blocks_;
  Block* classes_[kClasses] = {};
  Block *newest_ = nullptr, *oldest_ = nullptr;
  uint64_t limit_ = 0;
  int sessions_ = 0;
  uint64_t peak_ = 0, earlier_peak_ = 0;  // of use, in this window and in the one before it
  int64_t window_end_ = 0;
  Counts counts_;
};

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_TENSOR_MEMORY_H_
