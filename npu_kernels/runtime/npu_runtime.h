// The NPU runtime: one device of this process through libascendcl, as C functions.
//
// Both sides that launch kernels use it and nothing else does: TensorFlow's op (frontend/native) and
// runtime/acl.py. build/npu_runtime.py compiles it with the host compiler; libascendcl is opened by dlopen,
// so no header or library of CANN is needed.
//
// Every function may be called from any thread. What a call reports is in AutofuseNpuError: the function of
// ACL, its code and ACL's own words. In a process that was forked after a device had been opened every call
// fails at once and touches neither locks nor ACL. After autofuse_npu_close every call fails, and tensors
// that still live are empty shells that may be released.
#ifndef AUTOFUSE_NPU_RUNTIME_H_
#define AUTOFUSE_NPU_RUNTIME_H_

#include <cstdint>

#define AUTOFUSE_NPU_VERSION 1

// What a call gives. Refused: a value is not one that the kernel computes (an index out of range).
#define AUTOFUSE_NPU_DONE 0
#define AUTOFUSE_NPU_FAILED 1
#define AUTOFUSE_NPU_REFUSED 2

extern "C" {

struct AutofuseNpu;        // a device; never deleted, so that whoever has one may keep it
struct AutofuseNpuTensor;  // values in device memory

struct AutofuseNpuError {
  int32_t code;  // ACL's, or -1 for what is not ACL's
  char call[60];
  char text[960];
};

struct AutofuseNpuInput {
  uint64_t bytes;
  const void* host;           // the values; null: `device` has them, or (both null) the kernel reads none
  AutofuseNpuTensor* device;  // a tensor that an earlier run left on the device; it stays the caller's
  int32_t keep;               // nonzero: `kept` is wanted, of values of the host
  AutofuseNpuTensor* kept;    // out: the values as the kernel reads them, the caller's
};

struct AutofuseNpuOutput {
  uint64_t bytes;
  void* host;               // where the values go; null: nowhere
  int32_t keep;             // nonzero: they stay on the device
  AutofuseNpuTensor* kept;  // out: the tensor, the caller's
};

struct AutofuseNpuRun {
  const void* function;  // of autofuse_npu_function
  uint32_t block_dim;    // 0: nothing to do but to place outputs
  int32_t all_at_once;   // its blocks wait for each other
  uint32_t input_count, output_count;
  AutofuseNpuInput* inputs;
  AutofuseNpuOutput* outputs;
  const void* tiling;
  uint64_t tiling_bytes;
  uint64_t workspace_bytes;
  // Where in the workspace the blocks' status words begin, 64 bytes a block; -1: there are none.
  int64_t status_offset;
};

struct AutofuseNpuUse {
  uint64_t used, kept, peak;        // device memory, bytes: in use, kept for later, most in use at once
  uint64_t host_used, host_kept;    // page-locked host memory
  uint64_t streams, pending;        // streams; runs that nobody has waited for yet
  uint64_t lost;                    // bytes that a failed stream may still use: they come back at the end
};

typedef int64_t (*AutofuseNpuVersion)(void);
// The process's runtime of this library (a path) and device: opened by the first call, the same afterwards.
// Null: `error` says why.
typedef AutofuseNpu* (*AutofuseNpuOpen)(const char* library, int32_t device, AutofuseNpuError* error);
// Waits for all work and gives everything back, once. The first error is told and the rest still given back.
typedef int32_t (*AutofuseNpuClose)(AutofuseNpu* npu, AutofuseNpuError* error);
// Null: the device can be used; else why it can't (closed, forked).
typedef const char* (*AutofuseNpuUnusable)(const AutofuseNpu* npu);
// The entry `name` of the device binary in file `binary`; both are looked up once.
typedef int32_t (*AutofuseNpuFunction)(AutofuseNpu* npu, const char* binary, const char* name,
                                       const void** function, AutofuseNpuError* error);
// Queues copies and kernel on one stream. Waits, once, where a value goes to the host or status words are
// read; else it returns with the work queued, and an error of it shows where somebody waits for its results.
// On failure nothing is kept and the host outputs are undefined.
typedef int32_t (*AutofuseNpuRunFunction)(AutofuseNpu* npu, AutofuseNpuRun* run, AutofuseNpuError* error);
// Waits for the tensor's values and copies them to host memory of so many bytes (its size).
typedef int32_t (*AutofuseNpuRead)(AutofuseNpuTensor* tensor, void* host, uint64_t bytes,
                                   AutofuseNpuError* error);
// Whether the work that makes the values has been waited for without an error.
typedef int32_t (*AutofuseNpuSettled)(const AutofuseNpuTensor* tensor);
// Gives the tensor up. The memory is used again once no queued work needs it.
typedef void (*AutofuseNpuRelease)(AutofuseNpuTensor* tensor);
typedef void (*AutofuseNpuGetUse)(AutofuseNpu* npu, AutofuseNpuUse* use);
// Gives memory that is kept for later back to the device.
typedef int32_t (*AutofuseNpuTrim)(AutofuseNpu* npu, AutofuseNpuError* error);

}  // extern "C"

// Every function of the library: type, name.
#define AUTOFUSE_NPU_FUNCTIONS(X)                    \
  X(AutofuseNpuVersion, autofuse_npu_version)        \
  X(AutofuseNpuOpen, autofuse_npu_open)              \
  X(AutofuseNpuClose, autofuse_npu_close)            \
  X(AutofuseNpuUnusable, autofuse_npu_unusable)      \
  X(AutofuseNpuFunction, autofuse_npu_function)      \
  X(AutofuseNpuRunFunction, autofuse_npu_run)        \
  X(AutofuseNpuRead, autofuse_npu_read)              \
  X(AutofuseNpuSettled, autofuse_npu_settled)        \
  X(AutofuseNpuRelease, autofuse_npu_release)        \
  X(AutofuseNpuGetUse, autofuse_npu_get_use)         \
  X(AutofuseNpuTrim, autofuse_npu_trim)

#endif  // AUTOFUSE_NPU_RUNTIME_H_
