// The tiling data that the host computes and the kernel reads.
#pragma once
#include <cstdint>

struct AutofuseTilingData {
  int64_t z0Tb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t z0t_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecin1_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t veccalc0_bytes;  // bytes of one buffer
  uint32_t veccalc1_bytes;  // bytes of one buffer
  uint32_t veccalc2_bytes;  // bytes of one buffer
  uint32_t unused;  // fills the last 8 bytes
};
static_assert(sizeof(AutofuseTilingData) == 48, "padding in AutofuseTilingData");
