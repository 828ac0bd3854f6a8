// Why: probes of tiles, broadcasts and row padding. number[0..] are the shape parameters of the probe.
#include "probe.h"

#include "autofuse/broadcast.h"
#include "autofuse/tile.h"

using namespace autofuse;

constexpr uint32_t kBuffer = 140000;

// Loads a tile (sizes, GM strides, UB strides from the input's first 12 int64) and stores the UB buffer as it
// is.
template <typename T>
static void TileIn(void** args) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, kBuffer);
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[4]);
  const int64_t* spec = reinterpret_cast<const int64_t*>(args[1]);
  Tile tile;
  for (int i = 0; i < 4; ++i) {
    tile.size[i] = static_cast<uint32_t>(spec[i]);
    tile.gm[i] = spec[4 + i];
    tile.ub[i] = static_cast<uint32_t>(spec[8 + i]);
  }
  GlobalTensor<T> in, out;
  in.SetGlobalBuffer(reinterpret_cast<T*>(args[0]));
  out.SetGlobalBuffer(reinterpret_cast<T*>(args[2]));
  const LocalTensor<T> d = buffer.Get<T>();
  Duplicate(d.template ReinterpretCast<int16_t>(), int16_t(0x7e7e), kBuffer / 2);
  PipeBarrier<PIPE_ALL>();
  LoadTile(d, in, tile);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(out, d, DataCopyExtParams(1, t.count * uint32_t(sizeof(T)), 0, 0, 0));
}
// The other way round: args[0] fills UB, the tile goes to GM.
template <typename T>
static void TileOut(void** args) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, kBuffer);
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[4]);
  const int64_t* spec = reinterpret_cast<const int64_t*>(args[1]);
  Tile tile;
  for (int i = 0; i < 4; ++i) {
    tile.size[i] = static_cast<uint32_t>(spec[i]);
    tile.gm[i] = spec[4 + i];
    tile.ub[i] = static_cast<uint32_t>(spec[8 + i]);
  }
  GlobalTensor<T> in, out;
  in.SetGlobalBuffer(reinterpret_cast<T*>(args[0]));
  out.SetGlobalBuffer(reinterpret_cast<T*>(args[2]));
  const LocalTensor<T> d = buffer.Get<T>();
  DataCopyPad(d, in, DataCopyExtParams(1, t.count * uint32_t(sizeof(T)), 0, 0, 0), DataCopyPadExtParams<T>());
  PipeBarrier<PIPE_ALL>();
  StoreTile(out, d, tile);
}
#define TILES(T)                           \
  KERNEL("tile_in_" #T, TileIn<T>(args);); \
  KERNEL("tile_out_" #T, TileOut<T>(args););
TILES(int8_t);
TILES(half);
TILES(float);
TILES(int64_t);

// rows, cols = number[0], number[1]; args: input, output. The whole input is loaded dense, the whole result
// stored.
enum Shape { kRows, kCols, kRemove, kAdd };
template <typename T, Shape which>
static void Reshape(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[3]);
  const uint32_t rows = t.number[0], cols = t.number[1], padded = rows * PaddedRow<T>(cols);
  const uint32_t in_count = which == kRows     ? cols
                            : which == kCols   ? rows
                            : which == kRemove ? padded
                                               : rows * cols;
  const uint32_t out_count = which == kRemove ? rows * cols : padded;
  const uint32_t tmp_bytes = which == kCols     ? BroadcastColsTmpBytes<T>(rows, cols)
                             : which == kRemove ? RemovePadTmpBytes<T>(rows, cols)
                             : which == kAdd    ? AddPadTmpBytes<T>(rows, cols)
                                                : 0;
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, to, scratch;
  pipe.InitBuffer(from, in_count * sizeof(T));
  pipe.InitBuffer(to, out_count * sizeof(T));
  pipe.InitBuffer(scratch, tmp_bytes ? tmp_bytes : 32);
  GlobalTensor<T> in, out;
  in.SetGlobalBuffer(reinterpret_cast<T*>(args[0]));
  out.SetGlobalBuffer(reinterpret_cast<T*>(args[1]));
  const LocalTensor<T> a = from.Get<T>(), d = to.Get<T>();
  const LocalTensor<uint8_t> tmp = scratch.Get<uint8_t>();
  Duplicate(d.template ReinterpretCast<int16_t>(), int16_t(0), out_count * sizeof(T) / 2);
  DataCopyPad(a, in, DataCopyExtParams(1, in_count * uint32_t(sizeof(T)), 0, 0, 0),
              DataCopyPadExtParams<T>());
  PipeBarrier<PIPE_ALL>();
  if constexpr (which == kRows) BroadcastRows(d, a, rows, cols);
  if constexpr (which == kCols) BroadcastCols(d, a, tmp, rows, cols);
  if constexpr (which == kRemove) RemovePad(d, a, tmp, rows, cols);
  if constexpr (which == kAdd) AddPad(d, a, tmp, rows, cols);
  PipeBarrier<PIPE_ALL>();
  if constexpr (which == kAdd) {  // the pad elements are undefined: only the rows' own may be stored
    for (uint32_t r = 0; r < rows; ++r)
      DataCopyPad(out[r * PaddedRow<T>(cols)], d[r * PaddedRow<T>(cols)],
                  DataCopyExtParams(1, cols * uint32_t(sizeof(T)), 0, 0, 0));
  } else {
    DataCopyPad(out, d, DataCopyExtParams(1, out_count * uint32_t(sizeof(T)), 0, 0, 0));
  }
}
#define RESHAPES(T)                                     \
  KERNEL("rows_" #T, Reshape<T, kRows>(args););         \
  KERNEL("cols_" #T, Reshape<T, kCols>(args););         \
  KERNEL("remove_pad_" #T, Reshape<T, kRemove>(args);); \
  KERNEL("add_pad_" #T, Reshape<T, kAdd>(args););
RESHAPES(int8_t);
RESHAPES(half);
RESHAPES(float);
RESHAPES(int64_t);
