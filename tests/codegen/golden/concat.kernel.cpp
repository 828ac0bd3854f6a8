// autofuse_reduce_0_Abs_ConcatV2_2
// A reduce kernel, scheduled for Ascend910B4-1; variants: 2.
// in0: float32 [4, 5]
// in1: float32 [4, 7]
// out0: float32 [4, 12]
#include "kernel_operator.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0 (4) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 3, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 5), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z0t_size + 7, 8)           load_0
//   vecout0   x2  256*floor_div(z0t_size + 7, 8)           abs_0
//   per tile: load_0 abs_0 store_0
__aicore__ inline void RunNest0Key0(GM_ADDR in0, GM_ADDR out0, const AutofuseNest0& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  const int64_t z0t_size = t.z0t_size;

  const int64_t total = FloorDiv((z0t_size + 3), z0t_size);
  const int64_t begin = block * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 4 - i_z0T * z0t_size);
    const uint32_t n0 = static_cast<uint32_t>(8 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[5 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 20, 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // abs_0 = Abs(load_0)    Abs_0
    load_0 = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> abs_0 = vecout0.AllocTensor<float>();
    AscendC::Abs(abs_0, load_0, n0);
    vecin0.FreeTensor(load_0);
    // output 0 = abs_0    concat
    vecout0.EnQue(abs_0);
    abs_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[12 * i_z0T * z0t_size], abs_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 20, 0, 28, 0});
    vecout0.FreeTensor(abs_0);
  }
}

// key 0: general, static
//   cut z0 (4) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 3, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 7), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z0t_size + 7, 8)           load_0
//   vecout0   x2  256*floor_div(z0t_size + 7, 8)           abs_0
//   per tile: load_0 abs_0 store_0
__aicore__ inline void RunNest1Key0(GM_ADDR in1, GM_ADDR out0, const AutofuseNest1& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  const int64_t z0t_size = t.z0t_size;

  const int64_t total = FloorDiv((z0t_size + 3), z0t_size);
  const int64_t begin = block * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 4 - i_z0T * z0t_size);
    const uint32_t n0 = static_cast<uint32_t>(8 * z0t_actual);
    // load_0 = Load(input 1)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in1[7 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 28, 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // abs_0 = Abs(load_0)    Abs_1
    load_0 = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> abs_0 = vecout0.AllocTensor<float>();
    AscendC::Abs(abs_0, load_0, n0);
    vecin0.FreeTensor(load_0);
    // output 0 = abs_0    concat
    vecout0.EnQue(abs_0);
    abs_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[12 * (i_z0T * z0t_size) + 5], abs_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 28, 0, 20, 0});
    vecout0.FreeTensor(abs_0);
  }
}

// nest 0: part0
__aicore__ inline void RunNest0(GM_ADDR in0, GM_ADDR out0, const AutofuseTilingData& all) {
  const AutofuseNest0& t = all.n0;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest0Key0(in0, out0, t, block);
  }
}

// nest 1: part1
__aicore__ inline void RunNest1(GM_ADDR in1, GM_ADDR out0, const AutofuseTilingData& all) {
  const AutofuseNest1& t = all.n1;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest1Key0(in1, out0, t, block);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_reduce_0_abs_concatv2_2(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0,
    GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (TILING_KEY_IS(0)) {
    RunNest0(in0, out0, t);
    RunNest1(in1, out0, t);
  }
}
