// autofuse_pointwise_0_Abs_Add_Relu
// A pointwise kernel, scheduled for Ascend910B4-1; variants: 1.
// in0: float32 [128]
// in1: float32 [192, 128]
// out0: float32 [192, 128]
#include "kernel_operator.h"
#include "autofuse/broadcast.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0 (192) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 191, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 128), rows padded to 8 elements
//   vecin0    x1  512                                      load_0
//   vecin1    x2  512*z0t_size                             load_1
//   vecout0   x2  512*z0t_size                             relu_0
//   veccalc0  x1  512                                      abs_0
//   veccalc1  x1  512*z0t_size                             broadcast_0
//   veccalc2  x1  512*z0t_size                             add_0
//   once per block: load_0 abs_0 broadcast_0
//   per tile: load_1 add_0 relu_0 store_0
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 1, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc0;
  pipe.InitBuffer(veccalc0, t.veccalc0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc1;
  pipe.InitBuffer(veccalc1, t.veccalc1_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc2;
  pipe.InitBuffer(veccalc2, t.veccalc2_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::LocalTensor<float> abs_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> add_0 = veccalc2.Get<float>();
  AscendC::LocalTensor<float> broadcast_0 = veccalc1.Get<float>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n0 = static_cast<uint32_t>(z0t_size);
  // load_0 = Load(input 0)    data1
  AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(load_0, gm_in0, AscendC::DataCopyExtParams{1, 512, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(load_0);
  // abs_0 = Abs(load_0)    Abs
  load_0 = vecin0.DeQue<float>();
  AscendC::Abs(abs_0, load_0, 128);
  vecin0.FreeTensor(load_0);
  // broadcast_0 = Broadcast(abs_0)    add
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::BroadcastRows(broadcast_0, abs_0, n0, 128);

  const int64_t total = FloorDiv((z0t_size + 191), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 192 - i_z0T * z0t_size);
    const uint32_t n1 = static_cast<uint32_t>(128 * z0t_actual);
    // load_1 = Load(input 1)    data2
    AscendC::LocalTensor<float> load_1 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_1, gm_in1[128 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(512 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_1);
    // add_0 = Add(broadcast_0, load_1)    add
    load_1 = vecin1.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(add_0, broadcast_0, load_1, n1);
    vecin1.FreeTensor(load_1);
    // relu_0 = Relu(add_0)    Relu
    AscendC::LocalTensor<float> relu_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Relu(relu_0, add_0, n1);
    // output 0 = relu_0    Relu
    vecout0.EnQue(relu_0);
    relu_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[128 * i_z0T * z0t_size], relu_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(512 * z0t_actual), 0, 0, 0});
    vecout0.FreeTensor(relu_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_pointwise_0_abs_add_relu(GM_ADDR in0, GM_ADDR in1,
    GM_ADDR out0, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (AscendC::GetBlockIdx() >= t.block_dim) {
    return;
  }
  if (TILING_KEY_IS(0)) {
    RunKey0(in0, in1, out0, t);
  }
}
