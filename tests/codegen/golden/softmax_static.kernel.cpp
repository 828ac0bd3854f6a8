// autofuse_reduce_0_Softmax
// A reduce kernel, scheduled for Ascend910B4-1; variants: 1.
// in0: float32 [1024, 256]
// out0: float32 [1024, 256]
#include "kernel_operator.h"
#include "autofuse/broadcast.h"
#include "autofuse/reduce.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0 (1024) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 1023, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 256), rows padded to 8 elements
//   vecin0    x2  1024*z0t_size                            load_0
//   vecout0   x2  1024*z0t_size                            div_0
//   veccalc0  x1  256*floor_div(z0t_size + 63, 64)         max_0 sum_0
//   veccalc1  x1  1024*z0t_size                            broadcast_0 sub_0 exp_0
//   veccalc2  x1  1024*z0t_size                            broadcast_1
//   scratch       16896 | 2048
//   per tile: load_0 max_0 broadcast_0 sub_0 exp_0 sum_0 broadcast_1 div_0 store_0
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR out0, const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc0;
  pipe.InitBuffer(veccalc0, t.veccalc0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc1;
  pipe.InitBuffer(veccalc1, t.veccalc1_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc2;
  pipe.InitBuffer(veccalc2, t.veccalc2_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::LocalTensor<float> broadcast_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> broadcast_1 = veccalc2.Get<float>();
  AscendC::LocalTensor<float> exp_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> max_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> sub_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> sum_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z0t_size = t.z0t_size;

  const int64_t total = FloorDiv((z0t_size + 1023), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 1024 - i_z0T * z0t_size);
    const uint32_t n0 = static_cast<uint32_t>(z0t_actual);
    const uint32_t n1 = static_cast<uint32_t>(256 * z0t_actual);
    // load_0 = Load(input 0)    x
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[256 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(1024 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // max_0 = Max(load_0)    Max
    load_0 = vecin0.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kMax>(max_0, load_0, tmp, n0, 256, 256);
    // broadcast_0 = Broadcast(max_0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::BroadcastCols(broadcast_0, max_0, tmp, n0, 256);
    // sub_0 = Sub(load_0, broadcast_0)    Sub
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sub_0, load_0, broadcast_0, n1);
    vecin0.FreeTensor(load_0);
    // exp_0 = Exp(sub_0)    Exp
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(exp_0, sub_0, n1);
    // sum_0 = Sum(exp_0)    Sum
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kSum>(sum_0, exp_0, tmp, n0, 256, 256);
    // broadcast_1 = Broadcast(sum_0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::BroadcastCols(broadcast_1, sum_0, tmp, n0, 256);
    // div_0 = Div(exp_0, broadcast_1)    Div
    AscendC::LocalTensor<float> div_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Div(div_0, exp_0, broadcast_1, n1);
    // output 0 = div_0
    vecout0.EnQue(div_0);
    div_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[256 * i_z0T * z0t_size], div_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(1024 * z0t_actual), 0, 0, 0});
    vecout0.FreeTensor(div_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_reduce_0_softmax(GM_ADDR in0, GM_ADDR out0, GM_ADDR workspace,
    GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (AscendC::GetBlockIdx() >= t.block_dim) {
    return;
  }
  if (TILING_KEY_IS(0)) {
    RunKey0(in0, out0, t);
  }
}
