// autofuse_reduce_0_Transpose_float32
// A reduce kernel, scheduled for Ascend910B4-1; variants: 1.
// in0: float32 [3, 5, 7]
// in1: float32 [7, 3, 5]
// out0: float32 [7, 3, 5]
#include "kernel_operator.h"
#include "autofuse/tile.h"
#include "autofuse/transpose.h"
#include "tiling_data.h"

namespace {

__aicore__ inline int64_t FloorDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
__aicore__ inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// key 0: general, static
//   cut z0 (7) into tiles of z0t_size; loop over (z0T: floor_div(z0t_size + 6, z0t_size)), blocks of
//       z0Tb_size
//   in UB: (z0t: z0t_size, z1z2: 15), rows padded to 8 elements
//   vecin0    x2  256*floor_div(15*floor_div(z0t_size + 7, 8) + 7, 8) load_0
//   vecin1    x2  256*floor_div(z0t_size + 3, 4)           load_1
//   vecout0   x2  256*floor_div(z0t_size + 3, 4)           add_0
//   veccalc0  x1  256*floor_div(z0t_size + 3, 4)           transpose_0
//   scratch       1024
//   per tile: load_0 transpose_0 load_1 add_0 store_0
__aicore__ inline void RunKey0(GM_ADDR in0, GM_ADDR in1, GM_ADDR out0, const AutofuseTilingData& t) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin0;
  pipe.InitBuffer(vecin0, 2, t.vecin0_bytes);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> vecin1;
  pipe.InitBuffer(vecin1, 2, t.vecin1_bytes);
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> vecout0;
  pipe.InitBuffer(vecout0, 2, t.vecout0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> veccalc0;
  pipe.InitBuffer(veccalc0, t.veccalc0_bytes);
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_buffer;
  pipe.InitBuffer(tmp_buffer, t.tmp_bytes);
  AscendC::GlobalTensor<float> gm_in0;
  gm_in0.SetGlobalBuffer((__gm__ float*)in0);
  AscendC::GlobalTensor<float> gm_in1;
  gm_in1.SetGlobalBuffer((__gm__ float*)in1);
  AscendC::GlobalTensor<float> gm_out0;
  gm_out0.SetGlobalBuffer((__gm__ float*)out0);
  AscendC::LocalTensor<float> transpose_0 = veccalc0.Get<float>();
  AscendC::LocalTensor<uint8_t> tmp = tmp_buffer.Get<uint8_t>();
  const int64_t z0t_size = t.z0t_size;
  const uint32_t n1 = static_cast<uint32_t>(8 * FloorDiv((z0t_size + 7), 8));

  const int64_t total = FloorDiv((z0t_size + 6), z0t_size);
  const int64_t begin = AscendC::GetBlockIdx() * t.z0Tb_size;
  const int64_t end = begin + t.z0Tb_size < total ? begin + t.z0Tb_size : total;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t i_z0T = i;
    const int64_t z0t_actual = Min(z0t_size, 7 - i_z0T * z0t_size);
    const uint32_t n0 = static_cast<uint32_t>(z0t_actual);
    const uint32_t n2 = static_cast<uint32_t>(16 * z0t_actual);
    // load_0 = Load(input 0)
    AscendC::LocalTensor<float> load_0 = vecin0.AllocTensor<float>();
    autofuse::LoadTile(load_0, gm_in0[i_z0T * z0t_size],
        autofuse::Tile{{1, 1, 15, static_cast<uint32_t>(z0t_actual)}, {0, 0, 7, 1},
            {0, 0, static_cast<uint32_t>(8 * FloorDiv((z0t_size + 7), 8)), 1}});
    vecin0.EnQue(load_0);
    // transpose_0 = Transpose(load_0)
    load_0 = vecin0.DeQue<float>();
    AscendC::PipeBarrier<PIPE_V>();
    autofuse::TransposeTile(transpose_0, load_0, tmp, 15, n0, n1, 16);
    vecin0.FreeTensor(load_0);
    // load_1 = Load(input 1)
    AscendC::LocalTensor<float> load_1 = vecin1.AllocTensor<float>();
    AscendC::DataCopyPad(load_1, gm_in1[15 * i_z0T * z0t_size],
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 60, 0, 0, 0},
        AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
    vecin1.EnQue(load_1);
    // add_0 = Add(transpose_0, load_1)
    load_1 = vecin1.DeQue<float>();
    AscendC::LocalTensor<float> add_0 = vecout0.AllocTensor<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(add_0, transpose_0, load_1, n2);
    vecin1.FreeTensor(load_1);
    // output 0 = add_0
    vecout0.EnQue(add_0);
    add_0 = vecout0.DeQue<float>();
    AscendC::DataCopyPad(gm_out0[15 * i_z0T * z0t_size], add_0,
        AscendC::DataCopyExtParams{static_cast<uint16_t>(z0t_actual), 60, 0, 0, 0});
    vecout0.FreeTensor(add_0);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void autofuse_reduce_0_transpose_float32(GM_ADDR in0, GM_ADDR in1,
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
