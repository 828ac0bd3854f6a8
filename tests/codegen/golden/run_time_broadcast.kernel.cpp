// autofuse_pointwise_0_Sub
// A pointwise kernel, scheduled for Ascend910B4-1; variants: 2.
// in0: float32 [s0, 60]
// in1: float32 [s1, 60]
// out0: float32 [broadcast_size(s0, s1), 60]
#include "kernel_operator.h"
#include "autofuse/tile.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t BroadcastSize(int64_t a, int64_t b) { return a == 1 ? b : a; }
__aicore__ inline int64_t StrideOrZero(int64_t dim, int64_t stride) { return dim == 1 ? 0 : stride; }
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, contiguous, if s0 == broadcast_size(s0, s1) and s1 == broadcast_size(s0, s1)
//   cut z0z1 (60*s0) into tiles of z0z1t_size; loop over (z0z1T: floor_div(60*s0 + z0z1t_size - 1,
//       z0z1t_size)), blocks of z0z1Tb_size
//   in UB: (z0z1t: z0z1t_size), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z0z1t_size + 63, 64)       load_0
//   vecin1    x2  256*floor_div(z0z1t_size + 63, 64)       load_1
//   vecout0   x2  256*floor_div(z0z1t_size + 63, 64)       sub_0
//   per tile: load_0 load_1 sub_0 store_0
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  const int64_t s0 = t.s0;
  const int64_t z0z1t_size = t.z0z1t_size;

  const int64_t total = FloorDiv((60 * s0 + z0z1t_size - 1), z0z1t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0z1Tb_size;
  const int64_t end = begin + t.z0z1Tb_size < total ? begin + t.z0z1Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0z1T = i;
    const int64_t z0z1t_actual = Min(z0z1t_size, (60 * s0) - i_z0z1T * z0z1t_size);
    const uint32_t n0 = static_cast<uint32_t>(z0z1t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z0z1T * z0z1t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // load_1 = Load(input 1)
    AscendC::LocalTensor<float> load_1 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_1, gm_in1[i_z0z1T * z0z1t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_1);
    // sub_0 = Sub(load_0, load_1)
    load_0 = vecin0.DeQue<float>();
    load_1 = vecin1.DeQue<float>();
    AscendC::LocalTensor<float> sub_0 = vecout0.AllocTensor<float>();
    AscendC::Sub(sub_0, load_0, load_1, n0);
    vecin0.FreeTensor(load_0);
    vecin1.FreeTensor(load_1);
    // output 0 = sub_0
    vecout0.EnQue(sub_0);
    sub_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[i_z0z1T * z0z1t_size], sub_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1t_actual), 0, 0, 0});
    vecout0.FreeTensor(sub_0);
  }
}

// key 1: general, strided
//   cut z0 (broadcast_size(s0, s1)) into tiles of z0t_size; loop over (z0T: floor_div(broadcast_size(s0, s1)
//       + z0t_size - 1, z0t_size)), blocks of z0Tb_size
//   in UB: (z0t: z0t_size, z1: 60), rows padded to 8 elements
//   vecin0    x2  256*z0t_size                             load_0
//   vecin1    x2  256*z0t_size                             load_1
//   vecout0   x2  256*z0t_size                             sub_0
//   per tile: load_0 load_1 sub_0 store_0
__aicore__ inline void RunKey1(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  const int64_t s0 = t.s0;
  const int64_t s1 = t.s1;
  const int64_t z0t_size = t.z0t_size;

  const int64_t total = FloorDiv((BroadcastSize(s0, s1) + z0t_size - 1), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, BroadcastSize(s0, s1) - i_z0T * z0t_size);
    const uint32_t n0 = static_cast<uint32_t>(64 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    autofuse::LoadTile(load_0, gm_in0[i_z0T * z0t_size * StrideOrZero(s0, 60)],
        autofuse::Tile{{1, 1, static_cast<uint32_t>(z0t_actual), 60}, {0, 0, StrideOrZero(s0, 60), 1},
            {0, 0, 64, 1}});
    vecin0.EnQue(load_0);
    // load_1 = Load(input 1)
    AscendC::LocalTensor<float> load_1 = vecin1.AllocTensor<float>();
    autofuse::LoadTile(load_1, gm_in1[i_z0T * z0t_size * StrideOrZero(s1, 60)],
        autofuse::Tile{{1, 1, static_cast<uint32_t>(z0t_actual), 60}, {0, 0, StrideOrZero(s1, 60), 1},
            {0, 0, 64, 1}});
    vecin1.EnQue(load_1);
    // sub_0 = Sub(load_0, load_1)
    load_0 = vecin0.DeQue<float>();
    load_1 = vecin1.DeQue<float>();
    AscendC::LocalTensor<float> sub_0 = vecout0.AllocTensor<float>();
    AscendC::Sub(sub_0, load_0, load_1, n0);
    vecin0.FreeTensor(load_0);
    vecin1.FreeTensor(load_1);
    // output 0 = sub_0
    vecout0.EnQue(sub_0);
    sub_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[60 * i_z0T * z0t_size], sub_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 240, 0, 0, 0});
    vecout0.FreeTensor(sub_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_pointwise_0_sub(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0,
    GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (AscendC::GetBlockIdx() >= t.block_dim) {
    return;
  }
  if (TILING_KEY_IS(0)) {
    RunKey0(in0, in1, out0, t);
  } else if (TILING_KEY_IS(1)) {
    RunKey1(in0, in1, out0, t);
  }
}
