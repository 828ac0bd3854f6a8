// autofuse_pointwise_0_Add_Relu_Mul
// A pointwise kernel, scheduled for Ascend910B4-1; variants: 1.
// in0: float32 [5, 3, 50]
// in1: float32 [5, 3, 50]
// out0: float32 [5, 3, 50]
// out1: float32 [5, 3, 50]
// out2: float32 [5, 3, 50]
#include "kernel_operator.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0z1z2 (750) into tiles of z0z1z2t_size; loop over (z0z1z2T: floor_div(z0z1z2t_size + 749,
//       z0z1z2t_size)), blocks of z0z1z2Tb_size
//   in UB: (z0z1z2t: z0z1z2t_size), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z0z1z2t_size + 63, 64)     load_0
//   vecin1    x2  256*floor_div(z0z1z2t_size + 63, 64)     load_1
//   vecout0   x2  256*floor_div(z0z1z2t_size + 63, 64)     add_0
//   vecout1   x2  256*floor_div(z0z1z2t_size + 63, 64)     relu_0
//   vecout2   x2  256*floor_div(z0z1z2t_size + 63, 64)     mul_0
//   per tile: load_0 load_1 add_0 relu_0 mul_0 store_0 store_1 store_2
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, GM_ADDR out1, GM_ADDR out2,
    const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout1;
  pipe.InitBuffer(vecout1, 2, t.vecout1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout2;
  pipe.InitBuffer(vecout2, 2, t.vecout2_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::GlobalTensor<float> gm_out1;
  gm_out1.SetGlobalBuffer((__gm__ float*)out1);
  AscendC::GlobalTensor<float> gm_out2;
  gm_out2.SetGlobalBuffer((__gm__ float*)out2);
  const int64_t z0z1z2t_size = t.z0z1z2t_size;

  const int64_t total = FloorDiv((z0z1z2t_size + 749), z0z1z2t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0z1z2Tb_size;
  const int64_t end = begin + t.z0z1z2Tb_size < total ? begin + t.z0z1z2Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0z1z2T = i;
    const int64_t z0z1z2t_actual = Min(z0z1z2t_size, 750 - i_z0z1z2T * z0z1z2t_size);
    const uint32_t n0 = static_cast<uint32_t>(z0z1z2t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z0z1z2T * z0z1z2t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1z2t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // load_1 = Load(input 1)
    AscendC::LocalTensor<float> load_1 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_1, gm_in1[i_z0z1z2T * z0z1z2t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1z2t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_1);
    // add_0 = Add(load_0, load_1)
    load_0 = vecin0.DeQue<float>();
    load_1 = vecin1.DeQue<float>();
    AscendC::LocalTensor<float> add_0 = vecout0.AllocTensor<float>();
    AscendC::Add(add_0, load_0, load_1, n0);
    vecin1.FreeTensor(load_1);
    // relu_0 = Relu(add_0)
    AscendC::LocalTensor<float> relu_0 = vecout1.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Relu(relu_0, add_0, n0);
    // mul_0 = Mul(add_0, load_0)
    AscendC::LocalTensor<float> mul_0 = vecout2.AllocTensor<float>();
    AscendC::Mul(mul_0, add_0, load_0, n0);
    vecin0.FreeTensor(load_0);
    // output 0 = add_0
    vecout0.EnQue(add_0);
    add_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[i_z0z1z2T * z0z1z2t_size], add_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1z2t_actual), 0, 0, 0});
    vecout0.FreeTensor(add_0);
    // output 1 = relu_0
    vecout1.EnQue(relu_0);
    relu_0 = vecout1.DeQue<float>();
    AscendC::DataCopyPad(gm_out1[i_z0z1z2T * z0z1z2t_size], relu_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1z2t_actual), 0, 0, 0});
    vecout1.FreeTensor(relu_0);
    // output 2 = mul_0
    vecout2.EnQue(mul_0);
    mul_0 = vecout2.DeQue<float>();
    AscendC::DataCopyPad(gm_out2[i_z0z1z2T * z0z1z2t_size], mul_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0z1z2t_actual), 0, 0, 0});
    vecout2.FreeTensor(mul_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_pointwise_0_add_relu_mul(GM_ADDR in0, GM_ADDR in1,
    GM_ADDR out0, GM_ADDR out1, GM_ADDR out2, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (AscendC::GetBlockIdx() >= t.block_dim) {
    return;
  }
  if (TILING_KEY_IS(0)) {
    RunKey0(in0, in1, out0, out1, out2, t);
  }
}
