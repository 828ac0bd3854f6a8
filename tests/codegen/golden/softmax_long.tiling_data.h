// The tiling data that the host computes and the kernel reads.
#pragma once
#include <cstdint>

// nest 0: g, parts, stage 0
struct AutofuseNest0 {
  int64_t onez1Tb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t z1t_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t tmp_bytes;  // bytes of the scratch buffer
  uint32_t first_block;  // block of the kernel that is the nest's block 0
  uint32_t sync;  // 1: all blocks wait for each other before this nest
};
static_assert(sizeof(AutofuseNest0) == 40, "padding in AutofuseNest0");

// nest 1: g, parts, stage 1
struct AutofuseNest1 {
  int64_t g_parts1;  // size
  int64_t oneTb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t onet_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t tmp_bytes;  // bytes of the scratch buffer
  uint32_t first_block;  // block of the kernel that is the nest's block 0
  uint32_t sync;  // 1: all blocks wait for each other before this nest
};
static_assert(sizeof(AutofuseNest1) == 48, "padding in AutofuseNest1");

// nest 2: g, parts, stage 2
struct AutofuseNest2 {
  int64_t onez1Tb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t z1t_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecin1_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t veccalc0_bytes;  // bytes of one buffer
  uint32_t veccalc1_bytes;  // bytes of one buffer
  uint32_t tmp_bytes;  // bytes of the scratch buffer
  uint32_t unused;  // fills the last 8 bytes
  uint32_t first_block;  // block of the kernel that is the nest's block 0
  uint32_t sync;  // 1: all blocks wait for each other before this nest
};
static_assert(sizeof(AutofuseNest2) == 56, "padding in AutofuseNest2");

// nest 3: g, parts, stage 3
struct AutofuseNest3 {
  int64_t g_parts2;  // size
  int64_t oneTb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t onet_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t tmp_bytes;  // bytes of the scratch buffer
  uint32_t first_block;  // block of the kernel that is the nest's block 0
  uint32_t sync;  // 1: all blocks wait for each other before this nest
};
static_assert(sizeof(AutofuseNest3) == 48, "padding in AutofuseNest3");

// nest 4: g, parts, stage 4
struct AutofuseNest4 {
  int64_t z1Tb_size;  // tiles of one block
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // the kernel variant
  uint32_t z1t_size;  // elements of the cut axis in one tile
  uint32_t vecin0_bytes;  // bytes of one buffer
  uint32_t vecin1_bytes;  // bytes of one buffer
  uint32_t vecin2_bytes;  // bytes of one buffer
  uint32_t vecout0_bytes;  // bytes of one buffer
  uint32_t veccalc0_bytes;  // bytes of one buffer
  uint32_t veccalc1_bytes;  // bytes of one buffer
  uint32_t veccalc2_bytes;  // bytes of one buffer
  uint32_t tmp_bytes;  // bytes of the scratch buffer
  uint32_t unused;  // fills the last 8 bytes
  uint32_t first_block;  // block of the kernel that is the nest's block 0
  uint32_t sync;  // 1: all blocks wait for each other before this nest
};
static_assert(sizeof(AutofuseNest4) == 64, "padding in AutofuseNest4");

struct AutofuseTilingData {
  int64_t part0_1_offset;  // bytes from the workspace's begin
  int64_t part0_2_offset;  // bytes from the workspace's begin
  int64_t part0_3_offset;  // bytes from the workspace's begin
  int64_t part0_4_offset;  // bytes from the workspace's begin
  int64_t workspace_bytes;  // of all workspaces
  uint32_t block_dim;  // cores that have work; 0: none
  uint32_t tiling_key;  // one kernel for all shapes
  AutofuseNest0 n0;
  AutofuseNest1 n1;
  AutofuseNest2 n2;
  AutofuseNest3 n3;
  AutofuseNest4 n4;
};
