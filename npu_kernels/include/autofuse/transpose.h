// Why: the transpose of a tile inside UB, for loads whose GM order is not the loop's.
//   TransposeTile(dst, src, tmp, rows, cols, src_stride, dst_stride)    dst[j*dst_stride + i] =
//   src[i*src_stride + j]
// T of width 2 or 4; bits are moved. Strides in elements, multiples of 32 B, src_stride >= cols, dst_stride
// >= rows. dst is written up to the 32 B block that ends each of its `cols` rows, with undefined content
// behind `rows`. tmp: kTransposeTmpBytes. One instruction turns 16 rows by a 32 B block; its repeats run
// along the longer side.
#pragma once
#include "fold.h"

namespace autofuse {

constexpr uint32_t kTransposeTmpBytes = 512;

template <typename T>
__aicore__ inline void TransposeTile(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                     const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                     uint32_t src_stride, uint32_t dst_stride) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "16- and 32-bit types");
  using W = typename detail::Word<sizeof(T)>::Type;
  constexpr uint32_t per_block = 32 / sizeof(T), pieces = 16 / per_block;  // 32 B blocks that 16 rows become
  const LocalTensor<W> from = src.template ReinterpretCast<W>(), to = dst.template ReinterpretCast<W>(),
                       spill = tmp.ReinterpretCast<W>();
  if (rows == 0 || cols == 0) return;
  // Whole groups of 16 rows are repeats of one instruction a column of blocks, or the other way round. The
  // last group and the last block of columns are on their own: what they lack goes to tmp, so dst stays
  // within its rows.
  const uint32_t groups = rows / 16, bands = cols / per_block;
  const bool down = groups >= bands;  // repeats run over the groups of rows
  const uint32_t outer = down ? (cols + per_block - 1) / per_block : (rows + 15) / 16;
  const uint32_t inner = down ? (rows + 15) / 16 : (cols + per_block - 1) / per_block;
  const uint32_t whole = down ? groups : bands;
  bool spilled = false;
  for (uint32_t o = 0; o < outer; ++o) {
    // A repeat moves every destination, tmp too: what is incomplete across the repeats goes one by one.
    const bool partial = down ? (o + 1) * per_block > cols : (o + 1) * 16 > rows;
    for (uint32_t i = 0; i < inner;) {
      const uint32_t n = i < whole && !partial ? Least(whole - i, 255) : 1;
      const uint32_t row = (down ? i : o) * 16, col = (down ? o : i) * per_block;
      const uint32_t valid_rows = Least(rows - row, 16), valid_cols = Least(cols - col, per_block);
      LocalTensor<W> in[16], out[16];
      bool spills = false;
      for (uint32_t k = 0; k < 16; ++k) {
        in[k] = from[(row + Least(k, valid_rows - 1)) * src_stride + col];
        const uint32_t j = k / pieces, piece = k % pieces;
        const bool inside = j < valid_cols && piece * per_block < valid_rows;
        out[k] = inside ? to[(col + j) * dst_stride + row + piece * per_block] : spill[k * per_block];
        spills = spills || !inside;
      }
      if (spills && spilled) Sync();  // the same bytes of tmp
      spilled = spilled || spills;
      const uint32_t src_step = down ? 16 * src_stride / per_block : 1;
      const uint32_t dst_step = down ? pieces : dst_stride;
      AscendC::TransDataTo5HD<W>(
          out, in,
          AscendC::TransDataTo5HDParams(false, false, static_cast<uint8_t>(n),
                                        static_cast<uint16_t>(n > 1 ? dst_step : 0),
                                        static_cast<uint16_t>(n > 1 ? src_step : 0)));
      i += n;
    }
  }
}

}  // namespace autofuse
