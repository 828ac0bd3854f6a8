// autofuse_pointwise_0_Constants
// A pointwise kernel, scheduled for Ascend910B4-1; variants: 1.
// in0: float32 [1000]
// out0: float32 [1000]
// out1: float32 [1000]
#include "kernel_operator.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
template <typename T, typename Bits>
__aicore__ inline T FromBits(Bits bits) {
  union {
    Bits bits;
    T value;
  } both;
  both.bits = bits;
  return both.value;
}

// key 0: general, static
//   cut z0 (1000) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 999, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size), rows padded to 8 elements
//   vecin0    x2  256*floor_div(z0t_size + 63, 64)         load_0
//   vecout0   x2  256*floor_div(z0t_size + 63, 64)         sub_0
//   vecout1   x2  256*floor_div(z0t_size + 63, 64)         div_0
//   veccalc0  x1  256*floor_div(z0t_size + 63, 64)         fill_0
//   veccalc1  x1  256*floor_div(z0t_size + 63, 64)         add_0 maximum_0 mul_0 minimum_0 add_1
//   once per block: fill_0
//   per tile: load_0 add_0 maximum_0 mul_0 minimum_0 add_1 sub_0 store_0 div_0 store_1
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR out0, GM_ADDR out1, const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout1;
  pipe.InitBuffer(vecout1, 2, t.vecout1_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc0;
  pipe.InitBuffer(veccalc0, t.veccalc0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc1;
  pipe.InitBuffer(veccalc1, t.veccalc1_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::GlobalTensor<float> gm_out1;
  gm_out1.SetGlobalBuffer((__gm__ float*)out1);
  AscendC::LocalTensor<float> add_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> add_1 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> fill_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<float> maximum_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> minimum_0 = veccalc1.Get<float>();
  AscendC::LocalTensor<float> mul_0 = veccalc1.Get<float>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n0 = static_cast<uint32_t>(z0t_size);
  // fill_0 = Broadcast(1.0)
  AscendC::Duplicate(fill_0, 1.0f, n0);

  const int64_t total = FloorDiv((z0t_size + 999), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 1000 - i_z0T * z0t_size);
    const uint32_t n1 = static_cast<uint32_t>(z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    AscendC::DataCopyPad(load_0, gm_in0[i_z0T * z0t_size],
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0t_actual), 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin0.EnQue(load_0);
    // add_0 = Add(load_0, 0.10000000149011612)
    load_0 = vecin0.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Adds(add_0, load_0, 0.1f, n1);
    // maximum_0 = Maximum(add_0, -inf)
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Maxs(maximum_0, add_0, FromBits<float>(0xff800000u), n1);
    // mul_0 = Mul(maximum_0, -0.0)
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(mul_0, maximum_0, -0.0f, n1);
    // minimum_0 = Minimum(mul_0, inf)
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Mins(minimum_0, mul_0, FromBits<float>(0x7f800000u), n1);
    // add_1 = Add(minimum_0, 1.401298464324817e-45)
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Adds(add_1, minimum_0, 1e-45f, n1);
    // sub_0 = Sub(nan, add_1)
    AscendC::LocalTensor<float> sub_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(sub_0, add_1, (float)-1, n1); AscendC::PipeBarrier<PIPE_V>(); AscendC::Adds(sub_0, sub_0,
        FromBits<float>(0x7fc00000u), n1);
    // output 0 = sub_0
    vecout0.EnQue(sub_0);
    sub_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[i_z0T * z0t_size], sub_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0t_actual), 0, 0, 0});
    vecout0.FreeTensor(sub_0);
    // div_0 = Div(fill_0, load_0)
    AscendC::LocalTensor<float> div_0 = vecout1.AllocTensor<float>();
    AscendC::Div(div_0, fill_0, load_0, n1);
    vecin0.FreeTensor(load_0);
    // output 1 = div_0
    vecout1.EnQue(div_0);
    div_0 = vecout1.DeQue<float>();
    AscendC::DataCopyPad(gm_out1[i_z0T * z0t_size], div_0,
        AscendC::DataCopyExtParams{1, static_cast<uint32_t>(4 * z0t_actual), 0, 0, 0});
    vecout1.FreeTensor(div_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_pointwise_0_constants(GM_ADDR in0, GM_ADDR out0, GM_ADDR out1,
    GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(AutofuseTilingData);
  GET_TILING_DATA_WITH_STRUCT(AutofuseTilingData, t, tiling);
  if (AscendC::GetBlockIdx() >= t.block_dim) {
    return;
  }
  if (TILING_KEY_IS(0)) {
    RunKey0(in0, out0, out1, t);
  }
}
