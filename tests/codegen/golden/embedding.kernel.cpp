// autofuse_reduce_0_GatherV2_Mul
// A reduce kernel, scheduled for Ascend910B4-1; variants: 2.
// in0: float32 [s0, s1]
// in1: int32 [50]
// out0: float32 [50, s1]
// out1: float32 [50, s1]
#include "kernel_operator.h"
#include "autofuse/gather.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z1 (s1) into tiles of z1t_size; loop over (z0: 50, z1T: floor_div(s1 + z1t_size - 1, z1t_size)),
//       blocks of z0z1Tb_size
//   in UB: (z1t: z1t_size), rows padded to 8 elements
//   vecin0    x2  256                                      load_0
//   vecin1    x2  256*floor_div(z1t_size + 63, 64)         gather_0
//   vecout0   x2  256*floor_div(z1t_size + 63, 64)         mul_0
//   vecout1   x2  256*floor_div(z1t_size + 63, 64)         copy_0
//   per tile: load_0 gather_0 mul_0 store_0 copy_0 store_1
__aicore__ inline void RunNest0Key0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, GM_ADDR out1,
    const AutofuseNest0& t, int64_t block, bool& failed) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout1;
  pipe.InitBuffer(vecout1, 2, t.vecout1_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<int32_t> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ int32_t*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::GlobalTensor<float> gm_out1;
  gm_out1.SetGlobalBuffer((__gm__ float*)out1);
  const int64_t s0 = t.s0;
  const int64_t s1 = t.s1;
  const int64_t z1t_size = t.z1t_size;
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((z1t_size + 7), 8));

  const int64_t total = 50 * FloorDiv((s1 + z1t_size - 1), z1t_size);
  const int64_t begin = block * t.z0z1Tb_size;
  const int64_t end = begin + t.z0z1Tb_size < total ? begin + t.z0z1Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    int64_t rest = i;
    const int64_t i_z1T = rest % FloorDiv((s1 + z1t_size - 1), z1t_size);
    rest /= FloorDiv((s1 + z1t_size - 1), z1t_size);
    const int64_t i_z0 = rest;
    const int64_t z1t_actual = Min(z1t_size, s1 - i_z1T * z1t_size);
    const uint32_t n0 = static_cast<uint32_t>(z1t_actual);
    const uint32_t n2 = static_cast<uint32_t>(8 * FloorDiv((z1t_actual + 7), 8));
    // load_0 = Load(input 1)
    AscendC::LocalTensor<int32_t> load_0 = vecin0.AllocTensor<int32_t>();
    AscendC::DataCopyPad(load_0, gm_in1[i_z0], AscendC::DataCopyExtParams{1, 4, 0, 0, 0},
        AscendC::DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // gather_0 = Gather(input 0, load_0)    GatherV2
    load_0 = vecin0.DeQue<int32_t>();
    AscendC::LocalTensor<float> gather_0 = vecin1.AllocTensor<float>();
    failed = !autofuse::GatherRows(gather_0, gm_in0[i_z1T * z1t_size], load_0, 1, n0, s1, n1, s0) || failed;
    autofuse::WaitFor<AscendC::HardEvent::S_V>();
    vecin1.EnQue(gather_0);
    vecin0.FreeTensor(load_0);
    // mul_0 = Mul(gather_0, 2.0)
    gather_0 = vecin1.DeQue<float>();
    AscendC::LocalTensor<float> mul_0 = vecout0.AllocTensor<float>();
    AscendC::Muls(mul_0, gather_0, 2.0f, n0);
    // output 0 = mul_0
    vecout0.EnQue(mul_0);
    mul_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[(i_z0 * s1) + (i_z1T * z1t_size)], mul_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z1t_actual), 0, 0, 0});
    vecout0.FreeTensor(mul_0);
    // copy_0 = Copy(gather_0)
    AscendC::LocalTensor<float> copy_0 = vecout1.AllocTensor<float>();
    AscendC::DataCopy(copy_0, gather_0, n2);
    vecin1.FreeTensor(gather_0);
    // output 1 = copy_0
    vecout1.EnQue(copy_0);
    copy_0 = vecout1.DeQue<float>();
    AscendC::DataCopyPad(gm_out1[(i_z0 * s1) + (i_z1T * z1t_size)], copy_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z1t_actual), 0, 0, 0});
    vecout1.FreeTensor(copy_0);
  }
}

// key 1: general, static
//   cut z0 (50) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 49, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: s1), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z0t_size + 63, 64)         load_0
//   vecin1    x2  256*floor_div(z0t_size*floor_div(s1 + 7, 8) + 7, 8) gather_0
//   vecout0   x2  256*floor_div(z0t_size*floor_div(s1 + 7, 8) + 7, 8) mul_0
//   vecout1   x2  256*floor_div(z0t_size*floor_div(s1 + 7, 8) + 7, 8) copy_0
//   per tile: load_0 gather_0 mul_0 store_0 copy_0 store_1
__aicore__ inline void RunNest0Key1(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, GM_ADDR out1,
    const AutofuseNest0& t, int64_t block, bool& failed) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout1;
  pipe.InitBuffer(vecout1, 2, t.vecout1_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<int32_t> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ int32_t*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::GlobalTensor<float> gm_out1;
  gm_out1.SetGlobalBuffer((__gm__ float*)out1);
  const int64_t s0 = t.s0;
  const int64_t s1 = t.s1;
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n1 = static_cast<uint32_t>(s1);
  const uint32_t n2 = static_cast<uint32_t>(8 * FloorDiv((s1 + 7), 8));

  const int64_t total = FloorDiv((z0t_size + 49), z0t_size);
  const int64_t begin = block * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 50 - i_z0T * z0t_size);
    const uint32_t n0 = static_cast<uint32_t>(z0t_actual);
    const uint32_t n3 = static_cast<uint32_t>(8 * z0t_actual * FloorDiv((s1 + 7), 8));
    // load_0 = Load(input 1)
    AscendC::LocalTensor<int32_t> load_0 = vecin0.AllocTensor<int32_t>();
    AscendC::DataCopyPad(load_0, gm_in1[i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // gather_0 = Gather(input 0, load_0)    GatherV2
    load_0 = vecin0.DeQue<int32_t>();
    AscendC::LocalTensor<float> gather_0 = vecin1.AllocTensor<float>();
    failed = !autofuse::GatherRows(gather_0, gm_in0, load_0, n0, n1, s1, n2, s0) || failed;
    autofuse::WaitFor<AscendC::HardEvent::S_V>();
    vecin1.EnQue(gather_0);
    vecin0.FreeTensor(load_0);
    // mul_0 = Mul(gather_0, 2.0)
    gather_0 = vecin1.DeQue<float>();
    AscendC::LocalTensor<float> mul_0 = vecout0.AllocTensor<float>();
    AscendC::Muls(mul_0, gather_0, 2.0f, n3);
    // output 0 = mul_0
    vecout0.EnQue(mul_0);
    mul_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[i_z0T * s1 * z0t_size], mul_0,
    AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), static_cast<uint32_t>(4 * s1), 0, 0, 0});
    vecout0.FreeTensor(mul_0);
    // copy_0 = Copy(gather_0)
    AscendC::LocalTensor<float> copy_0 = vecout1.AllocTensor<float>();
    AscendC::DataCopy(copy_0, gather_0, n3);
    vecin1.FreeTensor(gather_0);
    // output 1 = copy_0
    vecout1.EnQue(copy_0);
    copy_0 = vecout1.DeQue<float>();
    AscendC::DataCopyPad(gm_out1[i_z0T * s1 * z0t_size], copy_0,
    AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), static_cast<uint32_t>(4 * s1), 0, 0, 0});
    vecout1.FreeTensor(copy_0);
  }
}

// nest 0: g
__aicore__ inline void RunNest0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, GM_ADDR out1,
    const AutofuseTilingData& all, bool& failed) {
  const AutofuseNest0& t = all.n0;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest0Key0(in0, in1, out0, out1, t, block, failed);
  } else if (t.tiling_key == 1) {
    RunNest0Key1(in0, in1, out0, out1, t, block, failed);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_reduce_0_gatherv2_mul(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0,
    GM_ADDR out1, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (TILING_KEY_IS(0)) {
    bool failed = false;
    RunNest0(in0, in1, out0, out1, t, failed);
    AscendC::GlobalTensor<int32_t> status;
    status.SetGlobalBuffer((__gm__ int32_t*)(workspace + t.status_offset));
    autofuse::StoreStatus(status, AscendC::GetBlockIdx(), failed);
  }
}
