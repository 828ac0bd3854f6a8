// autofuse_pointwise_0_Sub
// A pointwise kernel, scheduled for Ascend910B4-1; variants: 2.
// in0: float32 [37, 1]
// in1: float32 [1, 41]
// out0: float32 [37, 41]
#include "kernel_operator.h"
#include "autofuse/broadcast.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0 (37) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 36, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 41), rows padded to 8 elements
//   vecin0    x1  256                                      load_1
//   vecin1    x2  256*floor_div(z0t_size + 63, 64)         load_0
//   vecout0   x2  256*floor_div(3*z0t_size + 3, 4)         sub_0
//   veccalc0  x1  256*floor_div(3*z0t_size + 3, 4)         broadcast_1
//   veccalc1  x1  256*floor_div(3*z0t_size + 3, 4)         broadcast_0
//   scratch       2048
//   once per block: load_1 broadcast_1
//   per tile: load_0 broadcast_0 sub_0 store_0
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
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::LocalTensor<float> broadcast_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> broadcast_1 = veccalc0.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n0 = static_cast<uint32_t>(z0t_size);
  // load_1 = Load(input 1)
  AscendC::LocalTensor<float> load_1 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(load_1, gm_in1, AscendC::DataCopyExtParams{1, 164, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(load_1);
  // broadcast_1 = Broadcast(load_1)
  load_1 = vecin0.DeQue<float>();
  autofuse::BroadcastRows(broadcast_1, load_1, n0, 48);
  vecin0.FreeTensor(load_1);

  const int64_t total = FloorDiv((z0t_size + 36), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 37 - i_z0T * z0t_size);
    const uint32_t n1 = static_cast<uint32_t>(z0t_actual);
    const uint32_t n2 = static_cast<uint32_t>(48 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_0);
    // broadcast_0 = Broadcast(load_0)
    load_0 = vecin1.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::BroadcastCols(broadcast_0, load_0, tmp, n1, 48);
    vecin1.FreeTensor(load_0);
    // sub_0 = Sub(broadcast_0, broadcast_1)
    AscendC::LocalTensor<float> sub_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sub_0, broadcast_0, broadcast_1, n2);
    // output 0 = sub_0
    vecout0.EnQue(sub_0);
    sub_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[41 * i_z0T * z0t_size], sub_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 164, 0, 0, 0});
    vecout0.FreeTensor(sub_0);
  }
}

// key 1: unaligned, static
//   cut z0 (37) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 36, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 41), rows padded to 8 elements
//   vecin0    x1  256                                      load_1
//   vecin1    x2  256*floor_div(z0t_size + 63, 64)         load_0
//   vecout0   x2  256*floor_div(41*z0t_size + 63, 64)      sub_0
//   veccalc0  x1  256*floor_div(3*z0t_size + 3, 4)         broadcast_1 broadcast_0
//   veccalc1  x1  256*floor_div(41*z0t_size + 63, 64)      removepad_1
//   veccalc2  x1  256*floor_div(41*z0t_size + 63, 64)      removepad_0
//   scratch       256 | 2048
//   once per block: load_1 broadcast_1 removepad_1
//   per tile: load_0 broadcast_0 removepad_0 sub_0 store_0
__aicore__ inline void RunKey1(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, const AutofuseTilingData& t) {
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
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::LocalTensor<float> broadcast_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> broadcast_1 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> removepad_0 = veccalc2.Get<float>();
  AscendC::LocalTensor<float> removepad_1 = veccalc1.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n0 = static_cast<uint32_t>(z0t_size);
  // load_1 = Load(input 1)
  AscendC::LocalTensor<float> load_1 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(load_1, gm_in1, AscendC::DataCopyExtParams{1, 164, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(load_1);
  // broadcast_1 = Broadcast(load_1)
  load_1 = vecin0.DeQue<float>();
  autofuse::BroadcastRows(broadcast_1, load_1, n0, 48);
  vecin0.FreeTensor(load_1);
  // removepad_1 = RemovePad(broadcast_1)
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::RemovePad(removepad_1, broadcast_1, tmp, n0, 41);

  const int64_t total = FloorDiv((z0t_size + 36), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 37 - i_z0T * z0t_size);
    const uint32_t n1 = static_cast<uint32_t>(z0t_actual);
    const uint32_t n2 = static_cast<uint32_t>(41 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_0);
    // broadcast_0 = Broadcast(load_0)
    load_0 = vecin1.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::BroadcastCols(broadcast_0, load_0, tmp, n1, 48);
    vecin1.FreeTensor(load_0);
    // removepad_0 = RemovePad(broadcast_0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::RemovePad(removepad_0, broadcast_0, tmp, n1, 41);
    // sub_0 = Sub(removepad_0, removepad_1)
    AscendC::LocalTensor<float> sub_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sub_0, removepad_0, removepad_1, n2);
    // output 0 = sub_0
    vecout0.EnQue(sub_0);
    sub_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[41 * i_z0T * z0t_size], sub_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(164 * z0t_actual), 0, 0, 0});
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
