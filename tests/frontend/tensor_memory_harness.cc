// TensorMemory behind C functions, with a clock that the test sets, and threads at work on one of it.
#include "tensor_memory.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using autofuse::TensorMemory;

namespace {

std::atomic<int64_t> seconds{0};
int64_t Seconds() { return seconds; }

}  // namespace

extern "C" {

TensorMemory* make() { return new TensorMemory(&Seconds); }
void set_time(int64_t now) { seconds = now; }
void* take(TensorMemory* memory, uint64_t bytes) { return memory->Take(bytes); }
int give(TensorMemory* memory, void* address) { return memory->Give(address); }
uint64_t size_of(TensorMemory* memory, void* address) { return memory->SizeOf(address); }
void begin(TensorMemory* memory) { memory->Begin(); }
void end(TensorMemory* memory) { memory->End(); }
void set_limit(TensorMemory* memory, uint64_t limit) { memory->SetLimit(limit); }

void counts(TensorMemory* memory, uint64_t* values) {
  const TensorMemory::Counts counts = memory->counts();
  const uint64_t all[] = {counts.in_use, counts.kept, counts.peak, counts.most, counts.mapped, counts.reused,
                          counts.spare};
  std::memcpy(values, all, sizeof(all));
}

// Whether the page is mapped.
int mapped(void* address) { return msync(address, 4096, MS_ASYNC) == 0; }

// How many blocks did not hold what their owner had written into them.
int hammer(TensorMemory* memory, int threads, int rounds) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([=, &wrong] {
      std::mt19937 random(t);
      std::vector<std::pair<unsigned char*, size_t>> held;
      for (int round = 0; round < rounds; ++round) {
        const size_t bytes = (64 << 10) + random() % (256 << 10);
        unsigned char* block = static_cast<unsigned char*>(memory->Take(bytes));
        block[0] = block[bytes - 1] = static_cast<unsigned char>(t);
        held.push_back({block, bytes});
        if (held.size() < 8 && round + 1 < rounds) continue;
        for (const auto& each : held) {
          if (each.first[0] != t || each.first[each.second - 1] != t) ++wrong;
          if (!memory->Give(each.first)) ++wrong;
        }
        held.clear();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  return wrong;
}

// 0: a child of fork() frees and takes blocks of the memory for the process, while a thread of the parent did
// so at the fork.
int in_children(int children) {
  TensorMemory& memory = TensorMemory::Global();
  void* inherited = memory.Take(1 << 20);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) memory.Give(memory.Take(1 << 16));
  });
  int bad = 0;
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);  // of a lock that nobody will open
      _exit(memory.Give(inherited) && memory.Take(1 << 20) != nullptr ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  stop = true;
  busy.join();
  memory.Give(inherited);
  return bad;
}
}
