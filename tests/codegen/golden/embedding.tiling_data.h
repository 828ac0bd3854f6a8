// The tiling data that the host computes and the kernel reads.
#pragma once
#include <cstdint>

// nest 0: g, whole, stage 0
struct AutofuseNest0 {
  int64_t s0;  // size
  int64_t s1;  // size
  int64_t z0z1Tb_size;  // tiles of one block
  int64_t z0Tb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t z1t_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecin1_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t vecout1_bytes;  // bytes of one buffer
  uint32_t z0t_size;  // elements of the cut axis in one tile
  uint32_t first_block;  // block of the kernel that is the nest's block 0
  uint32_t sync;  // 1: all blocks wait for each other before this nest
};
static_assert(sizeof(AutofuseNest0) == 72, "padding in AutofuseNest0");

struct AutofuseTilingData {
  int64_t status_offset;  // bytes to the words that report indices out of range
  int64_t workspace_bytes;  // of all workspaces
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // one kernel for all shapes
  AutofuseNest0 n0;
};
