// autofuse_pointwise_0_Greater_Less_LogicalAnd_Select
// A pointwise kernel, scheduled for Ascend910B4-1; variants: 2.
// in0: float32 [33, 19]
// in1: float32 [19]
// out0: float32 [33, 19]
// out1: bool [33, 19]
#include "kernel_operator.h"
#include "autofuse/bitwise.h"
#include "autofuse/broadcast.h"
#include "autofuse/compare.h"
#include "autofuse/where.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0 (33) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 32, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 19), rows padded to 32 elements
//   vecin0    x1  256                                      load_1
//   vecin1    x2  256*floor_div(z0t_size + 1, 2)           load_0
//   vecout0   x2  256*floor_div(z0t_size + 1, 2)           where_0
//   vecout1   x2  256*floor_div(z0t_size + 7, 8)           logicalnot_0
//   veccalc0  x1  256*floor_div(z0t_size + 1, 2)           broadcast_0
//   veccalc1  x1  256*floor_div(z0t_size + 7, 8)           lt_0 logicaland_0
//   veccalc2  x1  256*floor_div(z0t_size + 7, 8)           gt_0
//   scratch       Min(8192, 3104*floor_div(z0t_size + 7, 8)) | 32 | Min(8192, 2592*floor_div(z0t_size + 7,
//       8))
//   once per block: load_1 broadcast_0
//   per tile: load_0 lt_0 gt_0 logicaland_0 where_0 store_0 logicalnot_0 store_1
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, GM_ADDR out1,
    const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 1, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout1;
  pipe.InitBuffer(vecout1, 2, t.vecout1_bytes);
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
  AscendC::GlobalTensor<uint8_t> gm_out1;
  gm_out1.SetGlobalBuffer((__gm__ uint8_t*)out1);
  AscendC::LocalTensor<float> broadcast_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<uint8_t> gt_0 = veccalc2.Get<uint8_t>();
  AscendC::LocalTensor<uint8_t> logicaland_0 = veccalc1.Get<uint8_t>();
  AscendC::LocalTensor<uint8_t> lt_0 = veccalc1.Get<uint8_t>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n0 = static_cast<uint32_t>(z0t_size);
  // load_1 = Load(input 1)
  AscendC::LocalTensor<float> load_1 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(load_1, gm_in1, AscendC::DataCopyExtParams{1, 76, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(load_1);
  // broadcast_0 = Broadcast(load_1)
  load_1 = vecin0.DeQue<float>();
  autofuse::BroadcastRows(broadcast_0, load_1, n0, 32);
  vecin0.FreeTensor(load_1);

  const int64_t total = FloorDiv((z0t_size + 32), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 33 - i_z0T * z0t_size);
    const uint32_t n1 = static_cast<uint32_t>(32 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[19 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 76, 0, 1, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_0);
    // lt_0 = Lt(load_0, broadcast_0)
    load_0 = vecin1.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::CompareToBool<AscendC::CMPMODE::LT>(lt_0, load_0, broadcast_0, tmp, n1);
    // gt_0 = Gt(load_0, 0.0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::CompareScalarToBool<AscendC::CMPMODE::GT>(gt_0, load_0, (float)0.0f, tmp, n1);
    // logicaland_0 = LogicalAnd(gt_0, lt_0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::LogicalAnd(logicaland_0, gt_0, lt_0, tmp, n1);
    // where_0 = Where(logicaland_0, load_0, broadcast_0)
    AscendC::LocalTensor<float> where_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::WhereSelect(where_0, logicaland_0, load_0, broadcast_0, tmp, n1);
    vecin1.FreeTensor(load_0);
    // output 0 = where_0
    vecout0.EnQue(where_0);
    where_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[19 * i_z0T * z0t_size], where_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 76, 1, 0, 0});
    vecout0.FreeTensor(where_0);
    // logicalnot_0 = LogicalNot(gt_0)
    AscendC::LocalTensor<uint8_t> logicalnot_0 = vecout1.AllocTensor<uint8_t>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::LogicalNot(logicalnot_0, gt_0, tmp, n1);
    // output 1 = logicalnot_0
    vecout1.EnQue(logicalnot_0);
    logicalnot_0 = vecout1.DeQue<uint8_t>();
    AscendC::DataCopyPad(gm_out1[19 * i_z0T * z0t_size], logicalnot_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 19, 0, 0, 0});
    vecout1.FreeTensor(logicalnot_0);
  }
}

// key 1: unaligned, static
//   cut z0 (33) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 32, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1: 19), rows padded to 32 elements
//   vecin0    x1  256                                      load_1
//   vecin1    x2  256*floor_div(19*z0t_size + 63, 64)      load_0
//   vecout0   x2  256*floor_div(19*z0t_size + 63, 64)      where_0
//   vecout1   x2  256*floor_div(19*z0t_size + 255, 256)    logicalnot_0
//   veccalc0  x1  256*floor_div(3*z0t_size + 7, 8) | 256*floor_div(19*z0t_size + 255, 256) broadcast_0 lt_0
//       logicaland_0
//   veccalc1  x1  256*floor_div(19*z0t_size + 63, 64)      removepad_0
//   veccalc2  x1  256*floor_div(19*z0t_size + 255, 256)    gt_0
//   scratch       256 | Min(8192, 3104*floor_div(19*z0t_size + 255, 256)) | 32 | Min(8192,
//       2592*floor_div(19*z0t_size + 255, 256))
//   once per block: load_1 broadcast_0 removepad_0
//   per tile: load_0 lt_0 gt_0 logicaland_0 where_0 store_0 logicalnot_0 store_1
__aicore__ inline void RunKey1(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, GM_ADDR out1,
    const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 1, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout1;
  pipe.InitBuffer(vecout1, 2, t.vecout1_bytes);
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
  AscendC::GlobalTensor<uint8_t> gm_out1;
  gm_out1.SetGlobalBuffer((__gm__ uint8_t*)out1);
  AscendC::LocalTensor<float> broadcast_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<uint8_t> gt_0 = veccalc2.Get<uint8_t>();
  AscendC::LocalTensor<uint8_t> logicaland_0 = veccalc0.Get<uint8_t>();
  AscendC::LocalTensor<uint8_t> lt_0 = veccalc0.Get<uint8_t>();
  AscendC::LocalTensor<float> removepad_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n0 = static_cast<uint32_t>(z0t_size);
  // load_1 = Load(input 1)
  AscendC::LocalTensor<float> load_1 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(load_1, gm_in1, AscendC::DataCopyExtParams{1, 76, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(load_1);
  // broadcast_0 = Broadcast(load_1)
  load_1 = vecin0.DeQue<float>();
  autofuse::BroadcastRows(broadcast_0, load_1, n0, 24);
  vecin0.FreeTensor(load_1);
  // removepad_0 = RemovePad(broadcast_0)
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::RemovePad(removepad_0, broadcast_0, tmp, n0, 19);

  const int64_t total = FloorDiv((z0t_size + 32), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 33 - i_z0T * z0t_size);
    const uint32_t n1 = static_cast<uint32_t>(19 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[19 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(76 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_0);
    // lt_0 = Lt(load_0, removepad_0)
    load_0 = vecin1.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::CompareToBool<AscendC::CMPMODE::LT>(lt_0, load_0, removepad_0, tmp, n1);
    // gt_0 = Gt(load_0, 0.0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::CompareScalarToBool<AscendC::CMPMODE::GT>(gt_0, load_0, (float)0.0f, tmp, n1);
    // logicaland_0 = LogicalAnd(gt_0, lt_0)
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::LogicalAnd(logicaland_0, gt_0, lt_0, tmp, n1);
    // where_0 = Where(logicaland_0, load_0, removepad_0)
    AscendC::LocalTensor<float> where_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::WhereSelect(where_0, logicaland_0, load_0, removepad_0, tmp, n1);
    vecin1.FreeTensor(load_0);
    // output 0 = where_0
    vecout0.EnQue(where_0);
    where_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[19 * i_z0T * z0t_size], where_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(76 * z0t_actual), 0, 0, 0});
    vecout0.FreeTensor(where_0);
    // logicalnot_0 = LogicalNot(gt_0)
    AscendC::LocalTensor<uint8_t> logicalnot_0 = vecout1.AllocTensor<uint8_t>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::LogicalNot(logicalnot_0, gt_0, tmp, n1);
    // output 1 = logicalnot_0
    vecout1.EnQue(logicalnot_0);
    logicalnot_0 = vecout1.DeQue<uint8_t>();
    AscendC::DataCopyPad(gm_out1[19 * i_z0T * z0t_size], logicalnot_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(19 * z0t_actual), 0, 0, 0});
    vecout1.FreeTensor(logicalnot_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_pointwise_0_greater_less_logicaland_select(GM_ADDR in0,
    GM_ADDR in1, GM_ADDR out0, GM_ADDR out1, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (AscendC::GetBlockIdx() >= t.block_dim) {
    return;
  }
  if (TILING_KEY_IS(0)) {
    RunKey0(in0, in1, out0, out1, t);
  } else if (TILING_KEY_IS(1)) {
    RunKey1(in0, in1, out0, out1, t);
  }
}
