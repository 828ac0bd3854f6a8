// The functions of libascendcl that the runtime calls, found by dlopen, and how their errors are told.
//
// On exit of Load every function is there, or the error names the one that is missing. Signatures are those
// of CANN 8.1's public headers; nothing of them is included.
#ifndef AUTOFUSE_ACL_API_H_
#define AUTOFUSE_ACL_API_H_

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "npu_runtime.h"

namespace autofuse_npu {

constexpr int kAlreadyInitialized = 100002;
constexpr int kHugePagesFirst = 0;
constexpr int kToDevice = 1, kToHost = 2;
constexpr uint32_t kScheduleMode = 1, kAllBlocksAtOnce = 1;

struct LaunchAttribute {
  uint32_t id;
  uint32_t value[4];
};
struct LaunchConfig {
  LaunchAttribute* attributes;
  size_t count;
};

#define AUTOFUSE_ACL_FUNCTIONS(X)                                                              \
  X(aclInit, const char*)                                                                      \
  X(aclFinalize)                                                                               \
  X(aclrtSetDevice, int32_t)                                                                   \
  X(aclrtResetDevice, int32_t)                                                                 \
  X(aclrtCreateStream, void**)                                                                 \
  X(aclrtDestroyStream, void*)                                                                 \
  X(aclrtSynchronizeStream, void*)                                                             \
  X(aclrtMalloc, void**, size_t, int)                                                          \
  X(aclrtFree, void*)                                                                          \
  X(aclrtMallocHost, void**, size_t)                                                           \
  X(aclrtFreeHost, void*)                                                                      \
  X(aclrtMemcpyAsync, void*, size_t, const void*, size_t, int, void*)                          \
  X(aclrtMemsetAsync, void*, size_t, int32_t, size_t, void*)                                   \
  X(aclrtBinaryLoadFromFile, const char*, void*, void**)                                       \
  X(aclrtBinaryUnLoad, void*)                                                                  \
  X(aclrtBinaryGetFunction, void*, const char*, void**)                                        \
  X(aclrtKernelArgsInit, void*, void**)                                                        \
  X(aclrtKernelArgsAppend, void*, void*, size_t, void**)                                       \
  X(aclrtKernelArgsFinalize, void*)                                                            \
  X(aclrtLaunchKernelWithConfig, void*, uint32_t, void*, LaunchConfig*, void*, void*)

// `code`, `call` and `text` cut to the room that there is.
inline void SetError(AutofuseNpuError* error, const char* call, int code, const std::string& text) {
  error->code = code;
  std::snprintf(error->call, sizeof(error->call), "%s", call);
  std::snprintf(error->text, sizeof(error->text), "%s", text.c_str());
}

struct AclApi {
#define AUTOFUSE_ACL_POINTER(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  AUTOFUSE_ACL_FUNCTIONS(AUTOFUSE_ACL_POINTER)
#undef AUTOFUSE_ACL_POINTER
  const char* (*aclGetRecentErrMsg)() = nullptr;  // may be missing

  bool Load(const char* path, AutofuseNpuError* error) {
    // Global: the runtime's own plug-ins look for its symbols. Never closed: it has threads of its own.
    void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      const char* reason = dlerror();
      SetError(error, "dlopen", -1, reason == nullptr ? path : reason);
      return false;
    }
#define AUTOFUSE_ACL_FIND(name, ...)                                                      \
  name = reinterpret_cast<int (*)(__VA_ARGS__)>(dlsym(library, #name));                   \
  if (name == nullptr) {                                                                  \
    SetError(error, "dlsym", -1, std::string(path) + " has no " #name);                   \
    return false;                                                                         \
  }
    AUTOFUSE_ACL_FUNCTIONS(AUTOFUSE_ACL_FIND)
#undef AUTOFUSE_ACL_FIND
    aclGetRecentErrMsg = reinterpret_cast<const char* (*)()>(dlsym(library, "aclGetRecentErrMsg"));
    return true;
  }

  // Whether `code` is success. If not, the error has what ACL says about it; to be asked on the calling
  // thread before its next call.
  bool Ok(const char* call, int code, AutofuseNpuError* error) const {
    if (code == 0) return true;
    const char* words = aclGetRecentErrMsg == nullptr ? nullptr : aclGetRecentErrMsg();
    std::string text = words == nullptr ? "" : words;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    SetError(error, call, code, text);
    return false;
  }
};

}  // namespace autofuse_npu

#endif  // AUTOFUSE_ACL_API_H_
