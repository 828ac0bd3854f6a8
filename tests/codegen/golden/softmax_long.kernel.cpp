// autofuse_reduce_0_Softmax
// A reduce kernel, scheduled for Ascend910B4-1; variants: 7.
// in0: float32 [1, 100000]
// out0: float32 [1, 100000]
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

// key 0: general, static, parts stage 0
//   cut z1 (100000) into tiles of z1t_size; loop over (one: 1, z1T: floor_div(z1t_size + 99999, z1t_size)),
//       blocks of onez1Tb_size
//   in UB: (z1t: z1t_size), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z1t_size + 63, 64)         load_0
//   vecout0   x2  256                                      max_0
//   scratch       16896
//   per tile: load_0 max_0 max_0_partial
__aicore__ inline void RunNest0Key0(GM_ADDR in0, GM_ADDR part0_1, const AutofuseNest0& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_part0_1;
  gm_part0_1.SetGlobalBuffer((__gm__ float*)part0_1);
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z1t_size = t.z1t_size;
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((z1t_size + 7), 8));

  const int64_t total = 1 * FloorDiv((z1t_size + 99999), z1t_size);
  const int64_t begin = block * t.onez1Tb_size;
  const int64_t end = begin + t.onez1Tb_size < total ? begin + t.onez1Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    int64_t rest = i;
    const int64_t i_z1T = rest % FloorDiv((z1t_size + 99999), z1t_size);
    const int64_t z1t_actual = Min(z1t_size, 100000 - i_z1T * z1t_size);
    const uint32_t n0 = static_cast<uint32_t>(z1t_actual);
    // load_0 = Load(input 0)    x
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z1T * z1t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z1t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // max_0 = Max(load_0)    Max
    load_0 = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> max_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kMax>(max_0, load_0, tmp, 1, n0, n1);
    vecin0.FreeTensor(load_0);
    // part0_1 = max_0    Max
    vecout0.EnQue(max_0);
    max_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_part0_1[i_z1T], max_0, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    vecout0.FreeTensor(max_0);
  }
}

// key 0: general, static, parts stage 1
//   cut one (1) into tiles of onet_size; loop over (oneT: floor_div(onet_size, onet_size)), blocks of
//       oneTb_size
//   in UB: (onet: onet_size, parts1: g_parts1), rows padded to 8 elements
//   vecin0    x2  256*floor_div(g_parts1 + 63, 64)         max_0_partials
//   vecout0   x2  256                                      max_0
//   scratch       16896
//   per tile: max_0_partials max_0 max_0_result
__aicore__ inline void RunNest1Key0(GM_ADDR part0_1, GM_ADDR part0_2, const AutofuseNest1& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_part0_1;
  gm_part0_1.SetGlobalBuffer((__gm__ float*)part0_1);
  AscendC::GlobalTensor<float> gm_part0_2;
  gm_part0_2.SetGlobalBuffer((__gm__ float*)part0_2);
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t g_parts1 = t.g_parts1;
  const int64_t onet_size = t.onet_size;
  const uint32_t n0 = static_cast<uint32_t>(g_parts1);
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((g_parts1 + 7), 8));

  const int64_t total = FloorDiv(onet_size, onet_size);
  const int64_t begin = block * t.oneTb_size;
  const int64_t end = begin + t.oneTb_size < total ? begin + t.oneTb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    // max_0_partials = Load(part0_1)    Max
    AscendC::LocalTensor<float> max_0_partials = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(max_0_partials, gm_part0_1,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * g_parts1), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(max_0_partials);
    // max_0 = Max(max_0_partials)    Max
    max_0_partials = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> max_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kMax>(max_0, max_0_partials, tmp, 1, n0, n1);
    vecin0.FreeTensor(max_0_partials);
    // part0_2 = max_0    Max
    vecout0.EnQue(max_0);
    max_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_part0_2, max_0, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    vecout0.FreeTensor(max_0);
  }
}

// key 1: tight, static, parts stage 1
//   cut one (1) into tiles of onet_size; loop over (oneT: floor_div(onet_size, onet_size)), blocks of
//       oneTb_size
//   in UB: (onet: onet_size, parts1: g_parts1), rows padded to 8 elements
//   vecin0    x1  256*floor_div(g_parts1 + 63, 64)         max_0_partials
//   vecout0   x1  256                                      max_0
//   scratch       16896
//   per tile: max_0_partials max_0 max_0_result
__aicore__ inline void RunNest1Key1(GM_ADDR part0_1, GM_ADDR part0_2, const AutofuseNest1& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 1, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 1, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_part0_1;
  gm_part0_1.SetGlobalBuffer((__gm__ float*)part0_1);
  AscendC::GlobalTensor<float> gm_part0_2;
  gm_part0_2.SetGlobalBuffer((__gm__ float*)part0_2);
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t g_parts1 = t.g_parts1;
  const int64_t onet_size = t.onet_size;
  const uint32_t n0 = static_cast<uint32_t>(g_parts1);
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((g_parts1 + 7), 8));

  const int64_t total = FloorDiv(onet_size, onet_size);
  const int64_t begin = block * t.oneTb_size;
  const int64_t end = begin + t.oneTb_size < total ? begin + t.oneTb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    // max_0_partials = Load(part0_1)    Max
    AscendC::LocalTensor<float> max_0_partials = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(max_0_partials, gm_part0_1,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * g_parts1), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(max_0_partials);
    // max_0 = Max(max_0_partials)    Max
    max_0_partials = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> max_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kMax>(max_0, max_0_partials, tmp, 1, n0, n1);
    vecin0.FreeTensor(max_0_partials);
    // part0_2 = max_0    Max
    vecout0.EnQue(max_0);
    max_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_part0_2, max_0, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    vecout0.FreeTensor(max_0);
  }
}

// key 0: general, static, parts stage 2
//   cut z1 (100000) into tiles of z1t_size; loop over (one: 1, z1T: floor_div(z1t_size + 99999, z1t_size)),
//       blocks of onez1Tb_size
//   in UB: (z1t: z1t_size), rows padded to 8 elements
//   vecin0    x1  256                                      max_0
//   vecin1    x2  256*floor_div(z1t_size + 63, 64)         load_0
//   vecout0   x2  256                                      sum_0
//   veccalc0  x1  256*floor_div(z1t_size + 63, 64)         broadcast_0
//   veccalc1  x1  256*floor_div(z1t_size + 63, 64)         sub_0 exp_0
//   scratch       2048 | 16896
//   once per block: max_0 broadcast_0
//   per tile: load_0 sub_0 exp_0 sum_0 sum_0_partial
__aicore__ inline void RunNest2Key0(GM_ADDR in0, GM_ADDR part0_2, GM_ADDR part0_3, const AutofuseNest2& t,
    int64_t block) {
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
  AscendC::GlobalTensor<float> gm_part0_2;
  gm_part0_2.SetGlobalBuffer((__gm__ float*)part0_2);
  AscendC::GlobalTensor<float> gm_part0_3;
  gm_part0_3.SetGlobalBuffer((__gm__ float*)part0_3);
  AscendC::LocalTensor<float> broadcast_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> exp_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> sub_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z1t_size = t.z1t_size;
  const uint32_t n0 = static_cast<uint32_t>(FloorDiv((z1t_size + 7), 8));
  const uint32_t n2 = static_cast<uint32_t>(8 * FloorDiv((z1t_size + 7), 8));
  // max_0 = Load(part0_2)    Max
  AscendC::LocalTensor<float> max_0 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(max_0, gm_part0_2, AscendC::DataCopyExtParams{1, 4, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(max_0);
  // broadcast_0 = Broadcast(max_0)
  max_0 = vecin0.DeQue<float>();
  autofuse::BroadcastCols(tmp[2016].ReinterpretCast<float>(), max_0, tmp, 1, 8);
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::BroadcastRows(broadcast_0, tmp[2016].ReinterpretCast<float>(), n0, 8);
  vecin0.FreeTensor(max_0);

  const int64_t total = 1 * FloorDiv((z1t_size + 99999), z1t_size);
  const int64_t begin = block * t.onez1Tb_size;
  const int64_t end = begin + t.onez1Tb_size < total ? begin + t.onez1Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    int64_t rest = i;
    const int64_t i_z1T = rest % FloorDiv((z1t_size + 99999), z1t_size);
    const int64_t z1t_actual = Min(z1t_size, 100000 - i_z1T * z1t_size);
    const uint32_t n1 = static_cast<uint32_t>(z1t_actual);
    // load_0 = Load(input 0)    x
    AscendC::LocalTensor<float> load_0 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z1T * z1t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z1t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_0);
    // sub_0 = Sub(load_0, broadcast_0)    Sub
    load_0 = vecin1.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sub_0, load_0, broadcast_0, n1);
    vecin1.FreeTensor(load_0);
    // exp_0 = Exp(sub_0)    Exp
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(exp_0, sub_0, n1);
    // sum_0 = Sum(exp_0)    Sum
    AscendC::LocalTensor<float> sum_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kSum>(sum_0, exp_0, tmp, 1, n1, n2);
    // part0_3 = sum_0    Sum
    vecout0.EnQue(sum_0);
    sum_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_part0_3[i_z1T], sum_0, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    vecout0.FreeTensor(sum_0);
  }
}

// key 0: general, static, parts stage 3
//   cut one (1) into tiles of onet_size; loop over (oneT: floor_div(onet_size, onet_size)), blocks of
//       oneTb_size
//   in UB: (onet: onet_size, parts2: g_parts2), rows padded to 8 elements
//   vecin0    x2  256*floor_div(g_parts2 + 63, 64)         sum_0_partials
//   vecout0   x2  256                                      sum_0
//   scratch       16896
//   per tile: sum_0_partials sum_0 sum_0_result
__aicore__ inline void RunNest3Key0(GM_ADDR part0_3, GM_ADDR part0_4, const AutofuseNest3& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_part0_3;
  gm_part0_3.SetGlobalBuffer((__gm__ float*)part0_3);
  AscendC::GlobalTensor<float> gm_part0_4;
  gm_part0_4.SetGlobalBuffer((__gm__ float*)part0_4);
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t g_parts2 = t.g_parts2;
  const int64_t onet_size = t.onet_size;
  const uint32_t n0 = static_cast<uint32_t>(g_parts2);
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((g_parts2 + 7), 8));

  const int64_t total = FloorDiv(onet_size, onet_size);
  const int64_t begin = block * t.oneTb_size;
  const int64_t end = begin + t.oneTb_size < total ? begin + t.oneTb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    // sum_0_partials = Load(part0_3)    Sum
    AscendC::LocalTensor<float> sum_0_partials = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(sum_0_partials, gm_part0_3,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * g_parts2), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(sum_0_partials);
    // sum_0 = Sum(sum_0_partials)    Sum
    sum_0_partials = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> sum_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kSum>(sum_0, sum_0_partials, tmp, 1, n0, n1);
    vecin0.FreeTensor(sum_0_partials);
    // part0_4 = sum_0    Sum
    vecout0.EnQue(sum_0);
    sum_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_part0_4, sum_0, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    vecout0.FreeTensor(sum_0);
  }
}

// key 1: tight, static, parts stage 3
//   cut one (1) into tiles of onet_size; loop over (oneT: floor_div(onet_size, onet_size)), blocks of
//       oneTb_size
//   in UB: (onet: onet_size, parts2: g_parts2), rows padded to 8 elements
//   vecin0    x1  256*floor_div(g_parts2 + 63, 64)         sum_0_partials
//   vecout0   x1  256                                      sum_0
//   scratch       16896
//   per tile: sum_0_partials sum_0 sum_0_result
__aicore__ inline void RunNest3Key1(GM_ADDR part0_3, GM_ADDR part0_4, const AutofuseNest3& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 1, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 1, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_part0_3;
  gm_part0_3.SetGlobalBuffer((__gm__ float*)part0_3);
  AscendC::GlobalTensor<float> gm_part0_4;
  gm_part0_4.SetGlobalBuffer((__gm__ float*)part0_4);
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t g_parts2 = t.g_parts2;
  const int64_t onet_size = t.onet_size;
  const uint32_t n0 = static_cast<uint32_t>(g_parts2);
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((g_parts2 + 7), 8));

  const int64_t total = FloorDiv(onet_size, onet_size);
  const int64_t begin = block * t.oneTb_size;
  const int64_t end = begin + t.oneTb_size < total ? begin + t.oneTb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    // sum_0_partials = Load(part0_3)    Sum
    AscendC::LocalTensor<float> sum_0_partials = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(sum_0_partials, gm_part0_3,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * g_parts2), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(sum_0_partials);
    // sum_0 = Sum(sum_0_partials)    Sum
    sum_0_partials = vecin0.DeQue<float>();
    AscendC::LocalTensor<float> sum_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::ReduceLast<autofuse::Fold::kSum>(sum_0, sum_0_partials, tmp, 1, n0, n1);
    vecin0.FreeTensor(sum_0_partials);
    // part0_4 = sum_0    Sum
    vecout0.EnQue(sum_0);
    sum_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_part0_4, sum_0, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    vecout0.FreeTensor(sum_0);
  }
}

// key 0: general, static, parts stage 4
//   cut z1 (100000) into tiles of z1t_size; loop over (z1T: floor_div(z1t_size + 99999, z1t_size)), blocks of
//        z1Tb_size
//   in UB: (z1t: z1t_size), rows padded to 8 elements
//   vecin0    x1  256                                      max_0
//   vecin1    x1  256                                      sum_0
//   vecin2    x2  256*floor_div(z1t_size + 63, 64)         load_0
//   vecout0   x2  256*floor_div(z1t_size + 63, 64)         div_0
//   veccalc0  x1  256*floor_div(z1t_size + 63, 64)         broadcast_0
//   veccalc1  x1  256*floor_div(z1t_size + 63, 64)         broadcast_1
//   veccalc2  x1  256*floor_div(z1t_size + 63, 64)         sub_0 exp_0
//   scratch       2048
//   once per block: max_0 broadcast_0 sum_0 broadcast_1
//   per tile: load_0 sub_0 exp_0 div_0 store_0
__aicore__ inline void RunNest4Key0(GM_ADDR in0, GM_ADDR out0, GM_ADDR part0_2, GM_ADDR part0_4,
    const AutofuseNest4& t, int64_t block) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 1, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 1, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin2;
  pipe.InitBuffer(vecin2, 2, t.vecin2_bytes);
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
  AscendC::GlobalTensor<float> gm_part0_2;
  gm_part0_2.SetGlobalBuffer((__gm__ float*)part0_2);
  AscendC::GlobalTensor<float> gm_part0_4;
  gm_part0_4.SetGlobalBuffer((__gm__ float*)part0_4);
  AscendC::LocalTensor<float> broadcast_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> broadcast_1 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> exp_0 = veccalc2.Get<float>();
  AscendC::LocalTensor<float> sub_0 = veccalc2.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z1t_size = t.z1t_size;
  const uint32_t n0 = static_cast<uint32_t>(FloorDiv((z1t_size + 7), 8));
  // max_0 = Load(part0_2)    Max
  AscendC::LocalTensor<float> max_0 = vecin0.AllocTensor<float>();
  AscendC::DataCopyPad(max_0, gm_part0_2, AscendC::DataCopyExtParams{1, 4, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin0.EnQue(max_0);
  // broadcast_0 = Broadcast(max_0)
  max_0 = vecin0.DeQue<float>();
  autofuse::BroadcastCols(tmp[2016].ReinterpretCast<float>(), max_0, tmp, 1, 8);
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::BroadcastRows(broadcast_0, tmp[2016].ReinterpretCast<float>(), n0, 8);
  vecin0.FreeTensor(max_0);
  // sum_0 = Load(part0_4)    Sum
  AscendC::LocalTensor<float> sum_0 = vecin1.AllocTensor<float>();
  AscendC::DataCopyPad(sum_0, gm_part0_4, AscendC::DataCopyExtParams{1, 4, 0, 0, 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  vecin1.EnQue(sum_0);
  // broadcast_1 = Broadcast(sum_0)
  sum_0 = vecin1.DeQue<float>();
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::BroadcastCols(tmp[2016].ReinterpretCast<float>(), sum_0, tmp, 1, 8);
  AscendC::PipeBarrier<PIPE_V>();
  autofuse::BroadcastRows(broadcast_1, tmp[2016].ReinterpretCast<float>(), n0, 8);
  vecin1.FreeTensor(sum_0);

  const int64_t total = FloorDiv((z1t_size + 99999), z1t_size);
  const int64_t begin = block * t.z1Tb_size;
  const int64_t end = begin + t.z1Tb_size < total ? begin + t.z1Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z1T = i;
    const int64_t z1t_actual = Min(z1t_size, 100000 - i_z1T * z1t_size);
    const uint32_t n1 = static_cast<uint32_t>(z1t_actual);
    // load_0 = Load(input 0)    x
    AscendC::LocalTensor<float> load_0 = vecin2.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z1T * z1t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z1t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin2.EnQue(load_0);
    // sub_0 = Sub(load_0, broadcast_0)    Sub
    load_0 = vecin2.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sub_0, load_0, broadcast_0, n1);
    vecin2.FreeTensor(load_0);
    // exp_0 = Exp(sub_0)    Exp
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(exp_0, sub_0, n1);
    // div_0 = Div(exp_0, broadcast_1)    Div
    AscendC::LocalTensor<float> div_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Div(div_0, exp_0, broadcast_1, n1);
    // output 0 = div_0
    vecout0.EnQue(div_0);
    div_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[i_z1T * z1t_size], div_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z1t_actual), 0, 0, 0});
    vecout0.FreeTensor(div_0);
  }
}

// nest 0: g, parts, stage 0
__aicore__ inline void RunNest0(GM_ADDR in0, GM_ADDR part0_1, const AutofuseTilingData& all) {
  const AutofuseNest0& t = all.n0;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest0Key0(in0, part0_1, t, block);
  }
}

// nest 1: g, parts, stage 1
__aicore__ inline void RunNest1(GM_ADDR part0_1, GM_ADDR part0_2, const AutofuseTilingData& all) {
  const AutofuseNest1& t = all.n1;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest1Key0(part0_1, part0_2, t, block);
  } else if (t.tiling_key == 1) {
    RunNest1Key1(part0_1, part0_2, t, block);
  }
}

// nest 2: g, parts, stage 2
__aicore__ inline void RunNest2(GM_ADDR in0, GM_ADDR part0_2, GM_ADDR part0_3,
    const AutofuseTilingData& all) {
  const AutofuseNest2& t = all.n2;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest2Key0(in0, part0_2, part0_3, t, block);
  }
}

// nest 3: g, parts, stage 3
__aicore__ inline void RunNest3(GM_ADDR part0_3, GM_ADDR part0_4, const AutofuseTilingData& all) {
  const AutofuseNest3& t = all.n3;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest3Key0(part0_3, part0_4, t, block);
  } else if (t.tiling_key == 1) {
    RunNest3Key1(part0_3, part0_4, t, block);
  }
}

// nest 4: g, parts, stage 4
__aicore__ inline void RunNest4(GM_ADDR in0, GM_ADDR out0, GM_ADDR part0_2, GM_ADDR part0_4,
    const AutofuseTilingData& all) {
  const AutofuseNest4& t = all.n4;
  const int64_t block = (AscendC::GetBlockIdx() + all.block_dim - t.first_block) % all.block_dim;
  if (block >= t.block_dim) {
    return;
  }
  if (t.tiling_key == 0) {
    RunNest4Key0(in0, out0, part0_2, part0_4, t, block);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_reduce_0_softmax(GM_ADDR in0, GM_ADDR out0, GM_ADDR workspace,
    GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  GM_ADDR part0_1 = workspace + t.part0_1_offset;
  GM_ADDR part0_2 = workspace + t.part0_2_offset;
  GM_ADDR part0_3 = workspace + t.part0_3_offset;
  GM_ADDR part0_4 = workspace + t.part0_4_offset;
  if (TILING_KEY_IS(0)) {
    RunNest0(in0, part0_1, t);
    if (t.n1.sync != 0) {
      AscendC::SyncAll<true>();
    }
    RunNest1(part0_1, part0_2, t);
    if (t.n2.sync != 0) {
      AscendC::SyncAll<true>();
    }
    RunNest2(in0, part0_2, part0_3, t);
    if (t.n3.sync != 0) {
      AscendC::SyncAll<true>();
    }
    RunNest3(part0_3, part0_4, t);
    if (t.n4.sync != 0) {
      AscendC::SyncAll<true>();
    }
    RunNest4(in0, out0, part0_2, part0_4, t);
  }
}
