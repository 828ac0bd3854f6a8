// The C interface between the AscBackend op and a generated kernel library, version 1.
//
// Every library exports, as extern "C", the functions whose types are declared here under the names in
// kernel_registry.cc. "dims" are int64 sizes; the ranks are static, so the dims of all tensors simply follow
// each other.
#ifndef TF_AUTOFUSE_NATIVE_KERNEL_ABI_H_
#define TF_AUTOFUSE_NATIVE_KERNEL_ABI_H_

#include <cstdint>

extern "C" {

struct AutofuseMachine {
  uint32_t core_num;
  uint32_t reserved;
  uint64_t ub_size;  // bytes of unified buffer that a kernel may use
};

// autofuse_abi_version: 1.
typedef int64_t (*AutofuseAbiVersion)(void);
// autofuse_shape: from the inputs' dims to the outputs' dims and the sizes that tiling wants. Nonzero: the
// check of this number does not hold, the kernel is not for these shapes.
typedef int32_t (*AutofuseShape)(const int64_t* in_dims, int64_t* out_dims, int64_t* sizes);
// autofuse_check_text (optional): what check number `number` says, the value that autofuse_shape gave.
typedef const char* (*AutofuseCheckText)(int32_t number);
// autofuse_tiling_size: bytes of the tiling data.
typedef int64_t (*AutofuseTilingSize)(void);
// autofuse_tiling: nonzero means that no tiling fits. A block_dim of 0 means that there is nothing to do.
typedef int32_t (*AutofuseTiling)(const int64_t* sizes, const AutofuseMachine* machine, void* tiling,
                                  uint32_t* block_dim, uint64_t* workspace_bytes);
// autofuse_run_blocks: runs the blocks [first_block, last_block) on the calling thread; may be called from
// several threads at once for one launch. 2: a value is not one that the kernel computes (an index out of
// range), which is no error: the original ops give the result or TensorFlow's error; such a kernel forwards
// nothing. Another nonzero value: the kernel broke a rule, `error` says which (NUL-terminated).
typedef int32_t (*AutofuseRunBlocks)(void* const* gm, const uint64_t* gm_bytes, void* workspace,
                                     const void* tiling, uint32_t block_dim, uint32_t first_block,
                                     uint32_t last_block, char* error, uint64_t error_capacity);
// A kernel for the NPU has no autofuse_run_blocks.
// autofuse_needs_all_blocks (optional): nonzero when the blocks wait for each other, so that only one call
// with all of them makes sense (the library then uses threads of its own).
typedef int32_t (*AutofuseNeedsAllBlocks)(void);
// autofuse_phases (optional): how many phases this plan has, 1 to 64, and where each of them ends; the last
// ends at block_dim. A phase begins when all blocks of the one before have ended. Without it: one phase.
typedef int32_t (*AutofusePhases)(const void* tiling, uint32_t* ends, int32_t capacity);
// autofuse_tiling_name, autofuse_tiling_value (optional): the name of a field of the tiling data that
// describes the plan, null behind the last one, and its value.
typedef const char* (*AutofuseTilingName)(int32_t index);
typedef int64_t (*AutofuseTilingValue)(const void* tiling, int32_t index);
// autofuse_block_cost (optional): about how many nanoseconds a block takes on one core; negative: not known.
typedef int64_t (*AutofuseBlockCost)(const void* tiling);

}  // extern "C"

#endif  // TF_AUTOFUSE_NATIVE_KERNEL_ABI_H_
