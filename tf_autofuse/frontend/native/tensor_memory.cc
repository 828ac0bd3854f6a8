#include "tensor_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>

namespace autofuse {

namespace {

using Guard = std::lock_guard<std::mutex>;

// What the processor maps at once where the system lets it, and the least block that is worth the bytes
// between its end and that of its last such page.
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kLeastHuge = 2 * kHugePage;

// Large blocks begin at a huge page and ask for such: a fault for 2 MiB instead of 512, and fewer entries
// of the TLB. Null where the system has no memory.
void* Map(size_t size) {
  const size_t more = size >= kLeastHuge ? kHugePage - TensorMemory::kPage : 0;
  void* mapped = mmap(nullptr, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (more == 0) return mapped;
  char* const begin = static_cast<char*>(mapped);
  char* const address = begin + (-reinterpret_cast<uintptr_t>(mapped)) % kHugePage;
  if (address != begin) munmap(begin, address - begin);
  const size_t behind = begin + more - address;
  if (behind != 0) munmap(address + size, behind);
  madvise(address, size, MADV_HUGEPAGE);
  return address;
}

int64_t CoarseSeconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

}  // namespace

constexpr size_t TensorMemory::kLeast;
constexpr size_t TensorMemory::kPage;

TensorMemory& TensorMemory::Global() {
  static TensorMemory* memory = [] {
    pthread_atfork([] { Global().Lock(); }, [] { Global().Unlock(); }, [] { Global().Unlock(); });
    return new TensorMemory(&CoarseSeconds);
  }();
  return *memory;
}

// Whole pages and at most an eighth more than asked for, so that there are few classes.
size_t TensorMemory::Rounded(size_t bytes) {
  const size_t step = std::max(kPage, (size_t{1} << (63 - __builtin_clzll(bytes))) / kSteps);
  return (bytes + step - 1) / step * step;
}

// All blocks of a class serve what was rounded to the class's least size.
int TensorMemory::ClassOf(size_t size) {
  const int power = 63 - __builtin_clzll(size);
  return power * kSteps + static_cast<int>((size >> (power - 3)) & (kSteps - 1));
}

void TensorMemory::Unmap(const Blocks& blocks) {
  for (Block* block : blocks) {
    munmap(block->address, block->size);
    delete block;
  }
}

// The smallest kept block that this size fits: up to twice the size, and up to eight times while all that
// is in use and was not asked for is a quarter of the peak at most. If blocks had to be of about the size,
// others would fill the bound, and a step of many sizes would map and unmap at every call; without the
// quarter, small tensors that a script keeps would hold large blocks for ever.
TensorMemory::Block* TensorMemory::Find(size_t size) const {
  const int least = ClassOf(size);
  for (int c = least; c <= std::min(least + 3 * kSteps, kClasses - 1); ++c) {
    Block* const block = classes_[c];
    if (block == nullptr) continue;
    const bool fits = c <= least + kSteps || counts_.spare + block->size - size <= Peak() / 4;
    return fits ? block : nullptr;
  }
  return nullptr;
}

void TensorMemory::Keep(Block* block) {
  Block*& first = classes_[ClassOf(block->size)];
  block->kept = true;
  block->before = nullptr;
  block->after = first;
  if (first != nullptr) first->before = block;
  first = block;
  block->newer = nullptr;
  block->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = block;
  newest_ = block;
  counts_.kept += block->size;
}

void TensorMemory::Unkeep(Block* block) {
  block->kept = false;
  (block->before != nullptr ? block->before->after : classes_[ClassOf(block->size)]) = block->after;
  if (block->after != nullptr) block->after->before = block->before;
  (block->newer != nullptr ? block->newer->older : newest_) = block->older;
  (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
  counts_.kept -= block->size;
}

void TensorMemory::SetInUse(uint64_t bytes) {
  const int64_t now = now_();
  if (now >= window_end_) {
    // Without a call for a whole window, the use has been what it is.
    earlier_peak_ = now < window_end_ + kWindowSeconds ? peak_ : counts_.in_use;
    peak_ = counts_.in_use;
    window_end_ = now + kWindowSeconds;
  }
  counts_.in_use = bytes;
  peak_ = std::max(peak_, bytes);
}

uint64_t TensorMemory::Peak() const { return std::max(peak_, earlier_peak_); }

// Takes out what may no longer be kept; the caller unmaps it without the lock.
TensorMemory::Blocks TensorMemory::Shrink() {
  const uint64_t bound = Peak() + Peak() / 2;
  return KeepAtMost(sessions_ == 0 ? 0 : std::min(limit_, bound - counts_.in_use));
}

TensorMemory::Blocks TensorMemory::KeepAtMost(uint64_t bytes) {
  Blocks gone;
  while (counts_.kept > bytes) {
    Block* block = oldest_;
    Unkeep(block);
    blocks_.erase(block->address);
    gone.push_back(block);
  }
  return gone;
}

void* TensorMemory::Take(size_t bytes) {
  const size_t size = Rounded(bytes);
  Block* block = TakeKept(size);
  return block != nullptr ? block->address : TakeNew(size);
}

// Null: nothing kept fits; the size counts as in use already.
TensorMemory::Block* TensorMemory::TakeKept(size_t size) {
  Blocks gone;
  Block* block;
  {
    Guard lock(mu_);
    block = Find(size);
    if (block != nullptr) {
      Unkeep(block);
      block->spare = block->size - size;
      counts_.spare += block->spare;
      ++counts_.reused;
    }
    SetInUse(counts_.in_use + (block != nullptr ? block->size : size));
    gone = Shrink();
    counts_.most = std::max(counts_.most, counts_.in_use + counts_.kept);
  }
  Unmap(gone);
  return block;
}

void* TensorMemory::TakeNew(size_t size) {
  void* address = Map(size);
  if (address == nullptr) {
    Blocks all;
    {
      Guard lock(mu_);
      all = KeepAtMost(0);
    }
    Unmap(all);
    address = Map(size);
  }
  Guard lock(mu_);
  if (address == nullptr) {
    SetInUse(counts_.in_use - size);
    return nullptr;
  }
  ++counts_.mapped;
  blocks_[address] = new Block{address, size, 0, false, nullptr, nullptr, nullptr, nullptr};
  return address;
}

bool TensorMemory::Give(void* address) {
  // Spares most of malloc's blocks the look-up.
  if (reinterpret_cast<uintptr_t>(address) % kPage != 0) return false;
  Blocks gone;
  {
    Guard lock(mu_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second->kept) return false;
    SetInUse(counts_.in_use - found->second->size);
    counts_.spare -= found->second->spare;
    found->second->spare = 0;
    Keep(found->second);
    gone = Shrink();
  }
  Unmap(gone);
  return true;
}

size_t TensorMemory::SizeOf(const void* address) {
  Guard lock(mu_);
  const auto found = blocks_.find(address);
  return found == blocks_.end() ? 0 : found->second->size;
}

void TensorMemory::Begin() {
  Guard lock(mu_);
  ++sessions_;
}

void TensorMemory::End() {
  Blocks gone;
  {
    Guard lock(mu_);
    --sessions_;
    gone = Shrink();
  }
  Unmap(gone);
}

void TensorMemory::SetLimit(uint64_t limit) {
  Blocks gone;
  {
    Guard lock(mu_);
    limit_ = limit;
    gone = Shrink();
  }
  Unmap(gone);
}

TensorMemory::Counts TensorMemory::counts() {
  Guard lock(mu_);
  Counts counts = counts_;
  counts.peak = Peak();
  return counts;
}

}  // namespace autofuse
