// A stand-in for libascendcl. Device memory is an arena of its own: addresses handed out lie in a range that
// the host may not touch, and only the calls below know the memory behind it. Work is queued on streams and
// done when a stream is synchronised, so that a missing wait leaves results undone. A "device binary" is a
// kernel library built for the twin. Copies want page-locked host memory and addresses of 64 bytes, as the
// real ones do. Every misuse is an error code and is counted; so is what is left over at the end.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr size_t kArena = size_t{1} << 28;
constexpr int kInvalid = 100000, kTwice = 100002, kNoInit = 100001, kNoMemory = 207001, kInjected = 507899;

struct Stream {
  std::vector<std::function<int()>> work;
};
struct Binary {
  void* library;
  std::string path;
};
struct Function {
  Binary* binary;
  std::string name;
};
struct Arguments {
  std::vector<uint64_t> values;
  bool final = false;
};

std::recursive_mutex lock;
char* forbidden = nullptr;  // the addresses
char* memory = nullptr;     // what is behind them
size_t used = 0, limit = kArena;
std::map<uint64_t, size_t> live;
std::map<uint64_t, size_t> free_list;
std::map<uint64_t, size_t> locked;  // page-locked host memory
std::map<Stream*, int> streams;
std::map<Binary*, std::vector<Function*>> binaries;
std::map<std::string, int> calls;
std::string failing, words;
int failing_at = 0, misuses = 0, open_devices = 0;
bool initialized = false;
bool foreign = false;
int opening = 1;             // of the device
thread_local int bound = 0;  // the opening that this thread has set its device in

int Fail(int code, const std::string& text) {
  words = text;
  if (code == kInvalid || code == kNoInit) ++misuses;
  return code;
}

// Counts the call; true where it is the one that has to fail.
bool Injected(const char* name) {
  const int number = ++calls[name];
  return failing == name && (number == failing_at || (failing_at < 0 && number >= -failing_at));
}

#define ENTER_UNBOUND(name)                                                     \
  std::lock_guard<std::recursive_mutex> held(lock);                             \
  if (Injected(name)) return Fail(kInjected, std::string(name) + ": injected"); \
  if (!initialized) return Fail(kNoInit, std::string(name) + ": aclInit is missing")
#define ENTER(name)    \
  ENTER_UNBOUND(name); \
  if (bound != opening) return Fail(kInvalid, std::string(name) + ": this thread has set no device")

// The allocation that holds [address, address + bytes), or end().
std::map<uint64_t, size_t>::iterator FindIn(std::map<uint64_t, size_t>& all, const void* address,
                                            size_t bytes) {
  auto at = all.upper_bound(reinterpret_cast<uint64_t>(address));
  if (at == all.begin()) return all.end();
  --at;
  const uint64_t offset = reinterpret_cast<uint64_t>(address) - at->first;
  return offset + bytes <= at->second ? at : all.end();
}

std::map<uint64_t, size_t>::iterator Find(const void* address, size_t bytes) {
  return FindIn(live, address, bytes);
}

char* Real(const void* address) { return memory + (static_cast<const char*>(address) - forbidden); }

}  // namespace

extern "C" {

const char* aclGetRecentErrMsg() { return words.c_str(); }

int aclInit(const char*) {
  std::lock_guard<std::recursive_mutex> held(lock);
  if (Injected("aclInit")) return Fail(kInjected, "aclInit: injected");
  if (foreign || initialized) {
    initialized = true;
    return Fail(kTwice, "repeated initialization");
  }
  if (forbidden == nullptr) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    forbidden = static_cast<char*>(mmap(nullptr, kArena, PROT_NONE, flags, -1, 0));
    memory = static_cast<char*>(mmap(nullptr, kArena, PROT_READ | PROT_WRITE, flags, -1, 0));
  }
  initialized = true;
  return 0;
}

int aclFinalize() {
  ENTER_UNBOUND("aclFinalize");
  if (open_devices != 0) return Fail(kInvalid, "aclFinalize: a device is open");
  initialized = false;
  return 0;
}

int aclrtSetDevice(int32_t device) {
  ENTER_UNBOUND("aclrtSetDevice");
  if (device != 0) return Fail(107001, "aclrtSetDevice: there is one device, 0");
  open_devices = 1;
  bound = opening;
  return 0;
}

int aclrtResetDevice(int32_t) {
  ENTER("aclrtResetDevice");
  open_devices = 0;
  ++opening;
  return 0;
}

int aclrtCreateStream(void** stream) {
  ENTER("aclrtCreateStream");
  if (open_devices == 0) return Fail(kInvalid, "aclrtCreateStream: no device is set");
  auto* made = new Stream();
  streams[made] = 1;
  *stream = made;
  return 0;
}

int aclrtDestroyStream(void* stream) {
  ENTER("aclrtDestroyStream");
  auto found = streams.find(static_cast<Stream*>(stream));
  if (found == streams.end()) return Fail(kInvalid, "aclrtDestroyStream: no such stream");
  const bool idle = found->first->work.empty();
  delete found->first;
  streams.erase(found);
  return idle ? 0 : Fail(kInvalid, "aclrtDestroyStream: work is left on it");
}

int aclrtSynchronizeStream(void* stream) {
  ENTER("aclrtSynchronizeStream");
  auto found = streams.find(static_cast<Stream*>(stream));
  if (found == streams.end()) return Fail(kInvalid, "aclrtSynchronizeStream: no such stream");
  std::vector<std::function<int()>> work;
  work.swap(found->first->work);
  for (auto& item : work) {
    if (int code = item()) return code;
  }
  return 0;
}

int aclrtMalloc(void** address, size_t bytes, int) {
  ENTER("aclrtMalloc");
  const size_t size = (bytes + 511) / 512 * 512;
  if (bytes == 0 || used + size > limit) return Fail(kNoMemory, "aclrtMalloc: no memory");
  uint64_t place = 0;
  for (auto& hole : free_list) {
    if (hole.second == size) {
      place = hole.first;
      break;
    }
  }
  if (place != 0) {
    free_list.erase(place);
  } else {
    static size_t top = 0;
    if (top + size > kArena) return Fail(kNoMemory, "aclrtMalloc: the arena is full");
    place = reinterpret_cast<uint64_t>(forbidden + top);
    top += size;
  }
  used += size;
  live[place] = bytes;
  memset(Real(reinterpret_cast<void*>(place)), 0xcd, size);  // never what somebody hopes for
  *address = reinterpret_cast<void*>(place);
  return 0;
}

int aclrtFree(void* address) {
  ENTER("aclrtFree");
  auto found = live.find(reinterpret_cast<uint64_t>(address));
  if (found == live.end()) return Fail(kInvalid, "aclrtFree: not allocated, or freed twice");
  const size_t size = (found->second + 511) / 512 * 512;
  free_list[found->first] = size;
  used -= size;
  live.erase(found);
  return 0;
}

int aclrtMallocHost(void** address, size_t bytes) {
  ENTER("aclrtMallocHost");
  if (bytes == 0 || posix_memalign(address, 64, bytes) != 0)
    return Fail(kNoMemory, "aclrtMallocHost: no memory");
  memset(*address, 0xab, bytes);
  locked[reinterpret_cast<uint64_t>(*address)] = bytes;
  return 0;
}

int aclrtFreeHost(void* address) {
  ENTER("aclrtFreeHost");
  if (locked.erase(reinterpret_cast<uint64_t>(address)) == 0)
    return Fail(kInvalid, "aclrtFreeHost: not allocated, or freed twice");
  free(address);
  return 0;
}

int aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t bytes, int kind, void* stream) {
  ENTER("aclrtMemcpyAsync");
  auto found = streams.find(static_cast<Stream*>(stream));
  if (found == streams.end()) return Fail(kInvalid, "aclrtMemcpyAsync: no such stream");
  if (bytes > room) return Fail(kInvalid, "aclrtMemcpyAsync: more bytes than room");
  const bool to_device = kind == 1, to_host = kind == 2;
  if (to_device == to_host) return Fail(kInvalid, "aclrtMemcpyAsync: kind");
  const void* device = to_device ? to : from;
  const void* host = to_device ? from : to;
  if (Find(device, bytes) == live.end()) return Fail(kInvalid, "aclrtMemcpyAsync: no device memory there");
  if (FindIn(locked, host, bytes) == locked.end())
    return Fail(kInvalid, "aclrtMemcpyAsync: no page-locked host memory there");
  if (((reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from)) & 63) != 0)
    return Fail(kInvalid, "aclrtMemcpyAsync: an address is not a multiple of 64");
  found->first->work.push_back([=] {
    if (Find(device, bytes) == live.end() || FindIn(locked, host, bytes) == locked.end())
      return Fail(kInvalid, "a copy of memory that was freed meanwhile");
    memcpy(to_device ? Real(to) : static_cast<char*>(to), to_device ? from : Real(from), bytes);
    return 0;
  });
  return 0;
}

int aclrtMemsetAsync(void* to, size_t room, int32_t value, size_t bytes, void* stream) {
  ENTER("aclrtMemsetAsync");
  auto found = streams.find(static_cast<Stream*>(stream));
  if (found == streams.end() || bytes > room || Find(to, bytes) == live.end())
    return Fail(kInvalid, "aclrtMemsetAsync: arguments");
  found->first->work.push_back([=] {
    memset(Real(to), value, bytes);
    return 0;
  });
  return 0;
}

int aclrtBinaryLoadFromFile(const char* path, void*, void** binary) {
  ENTER("aclrtBinaryLoadFromFile");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Fail(107000, dlerror());
  auto* made = new Binary{library, path};
  binaries[made];
  *binary = made;
  return 0;
}

int aclrtBinaryUnLoad(void* binary) {
  ENTER("aclrtBinaryUnLoad");
  auto found = binaries.find(static_cast<Binary*>(binary));
  if (found == binaries.end()) return Fail(kInvalid, "aclrtBinaryUnLoad: no such binary");
  for (Function* f : found->second) delete f;
  dlclose(found->first->library);
  delete found->first;
  binaries.erase(found);
  return 0;
}

int aclrtBinaryGetFunction(void* binary, const char* name, void** function) {
  ENTER("aclrtBinaryGetFunction");
  auto found = binaries.find(static_cast<Binary*>(binary));
  if (found == binaries.end()) return Fail(kInvalid, "aclrtBinaryGetFunction: no such binary");
  if (strncmp(name, "autofuse_", 9) != 0) return Fail(107000, std::string("no function ") + name);
  found->second.push_back(new Function{found->first, name});
  *function = found->second.back();
  return 0;
}

int aclrtKernelArgsInit(void* function, void** handle) {
  ENTER("aclrtKernelArgsInit");
  if (function == nullptr) return Fail(kInvalid, "aclrtKernelArgsInit: no function");
  *handle = new Arguments();
  return 0;
}

int aclrtKernelArgsAppend(void* handle, void* value, size_t bytes, void** place) {
  ENTER("aclrtKernelArgsAppend");
  auto* arguments = static_cast<Arguments*>(handle);
  if (bytes != 8 || arguments->final) return Fail(kInvalid, "aclrtKernelArgsAppend: arguments");
  arguments->values.push_back(*static_cast<uint64_t*>(value));
  *place = nullptr;
  return 0;
}

int aclrtKernelArgsFinalize(void* handle) {
  ENTER("aclrtKernelArgsFinalize");
  static_cast<Arguments*>(handle)->final = true;
  return 0;
}

int aclrtLaunchKernelWithConfig(void* function, uint32_t blocks, void* stream, void*, void* handle,
                                void* reserved) {
  ENTER("aclrtLaunchKernelWithConfig");
  auto* arguments = static_cast<Arguments*>(handle);
  auto found = streams.find(static_cast<Stream*>(stream));
  if (found == streams.end() || !arguments->final || blocks == 0 || reserved != nullptr ||
      arguments->values.size() < 3)
    return Fail(kInvalid, "aclrtLaunchKernelWithConfig: arguments");
  auto* f = static_cast<Function*>(function);
  const std::vector<uint64_t> values = arguments->values;
  delete arguments;
  using Run = int32_t (*)(void* const*, const uint64_t*, void*, const void*, uint32_t, uint32_t, uint32_t,
                          char*, uint64_t);
  auto run = reinterpret_cast<Run>(dlsym(f->binary->library, "autofuse_run_blocks"));
  found->first->work.push_back([=] {
    std::vector<void*> gm;
    std::vector<uint64_t> bytes;
    for (uint64_t v : values) {
      auto at = live.find(v);
      if (at == live.end()) return Fail(kInvalid, "an argument is no device memory");
      gm.push_back(Real(reinterpret_cast<void*>(v)));
      bytes.push_back(at->second);
    }
    char error[4096] = {0};
    const int32_t code = run(gm.data(), bytes.data(), gm[gm.size() - 2], gm.back(), blocks, 0, blocks, error,
                             sizeof(error));
    return code == 1 ? Fail(507035, error) : 0;
  });
  return 0;
}

// For the tests.
void standin_fail(const char* call, int at) {
  std::lock_guard<std::recursive_mutex> held(lock);
  failing = call;
  failing_at = at;
  calls.clear();
}
void standin_reset() {
  std::lock_guard<std::recursive_mutex> held(lock);
  for (auto& left : live) free_list[left.first] = (left.second + 511) / 512 * 512;
  live.clear();
  locked.clear();
  streams.clear();
  binaries.clear();
  calls.clear();
  used = 0;
  limit = kArena;
  misuses = open_devices = failing_at = 0;
  ++opening;
  failing.clear();
  initialized = foreign = false;
}
void standin_limit(uint64_t bytes) { limit = bytes == 0 ? kArena : bytes; }
void standin_foreign(int on) { foreign = on != 0; initialized = on != 0; }
int standin_calls(const char* name) { return calls[name]; }
// Allocations (of the device, of page-locked memory), streams and binaries that are left; misuses; whether
// ACL is initialised.
void standin_state(int64_t* state) {
  state[0] = static_cast<int64_t>(live.size() + locked.size());
  state[1] = static_cast<int64_t>(streams.size());
  state[2] = static_cast<int64_t>(binaries.size());
  state[3] = misuses;
  state[4] = initialized;
}
}
