// Why: probes of the reductions, of positions of extremes, of transposes and gathers. number[0..2] are rows,
// cols and the stride of a row in UB; number[3..] belong to the probe.
#include "probe.h"

#include "autofuse/arg.h"
#include "autofuse/gather.h"
#include "autofuse/reduce.h"
#include "autofuse/transpose.h"

using namespace autofuse;

template <typename T>
static void In(const LocalTensor<T>& to, void* from, uint32_t count) {
  GlobalTensor<T> g;
  g.SetGlobalBuffer(reinterpret_cast<T*>(from));
  if (count)
    DataCopyPad(to, g, DataCopyExtParams(1, count * uint32_t(sizeof(T)), 0, 0, 0), DataCopyPadExtParams<T>());
}
template <typename T>
static void Out(void* to, const LocalTensor<T>& from, uint32_t count) {
  GlobalTensor<T> g;
  g.SetGlobalBuffer(reinterpret_cast<T*>(to));
  if (count) DataCopyPad(g, from, DataCopyExtParams(1, count * uint32_t(sizeof(T)), 0, 0, 0));
}
static uint32_t Bytes(uint32_t n) { return n ? n : 32; }

// args: the rows as one array of rows*stride elements less the last row's padding; the results.
template <Fold kOp, typename T, bool kLast>
static void Reduce(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[3]);
  const uint32_t rows = t.number[0], cols = t.number[1], stride = t.number[2];
  const uint32_t in_count = rows && cols ? (rows - 1) * stride + cols : 0, out_count = kLast ? rows : cols;
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, to, scratch;
  pipe.InitBuffer(from, Bytes(rows * stride * sizeof(T)));
  pipe.InitBuffer(to, Bytes(out_count * sizeof(T)));
  pipe.InitBuffer(scratch, kReduceTmpBytes);
  const LocalTensor<T> a = from.Get<T>(), d = to.Get<T>();
  In(a, args[0], in_count);
  PipeBarrier<PIPE_ALL>();
  if constexpr (kLast) ReduceLast<kOp>(d, a, scratch.Get<uint8_t>(), rows, cols, stride);
  if constexpr (!kLast) ReduceFirst<kOp>(d, a, scratch.Get<uint8_t>(), rows, cols, stride);
  PipeBarrier<PIPE_ALL>();
  Out(args[1], d, out_count);
}
#define REDUCE(name, op, T)                                          \
  KERNEL("last_" name "_" #T, Reduce<Fold::op, T, true>(args););     \
  KERNEL("first_" name "_" #T, Reduce<Fold::op, T, false>(args););   \
  KERNEL("combine_" name "_" #T, CombineParts<Fold::op, T>(args);); \
  KERNEL("identity_" name "_" #T, Identity<Fold::op, T>(args););

// args: accumulators, parts, results; number[0] elements.
template <Fold kOp, typename T>
static void CombineParts(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[4]);
  const uint32_t n = t.number[0];
  TPipe pipe;
  TBuf<TPosition::VECCALC> acc, part, scratch;
  pipe.InitBuffer(acc, n * sizeof(T));
  pipe.InitBuffer(part, n * sizeof(T));
  pipe.InitBuffer(scratch, kReduceTmpBytes);
  In(acc.Get<T>(), args[0], n);
  In(part.Get<T>(), args[1], n);
  PipeBarrier<PIPE_ALL>();
  Combine<kOp>(acc.Get<T>(), part.Get<T>(), scratch.Get<uint8_t>(), n);
  PipeBarrier<PIPE_ALL>();
  Out(args[2], acc.Get<T>(), n);
}
template <Fold kOp, typename T>
static void Identity(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[2]);
  TPipe pipe;
  TBuf<TPosition::VECCALC> to;
  pipe.InitBuffer(to, t.number[0] * sizeof(T));
  FillIdentity<kOp>(to.Get<T>(), t.number[0]);
  PipeBarrier<PIPE_ALL>();
  Out(args[0], to.Get<T>(), t.number[0]);
}

#define REDUCES(T)          \
  REDUCE("sum", kSum, T);   \
  REDUCE("prod", kProd, T); \
  REDUCE("max", kMax, T);   \
  REDUCE("min", kMin, T)
REDUCES(float);
REDUCES(half);
REDUCES(int32_t);
REDUCES(int16_t);
REDUCE("max", kMax, int8_t);
REDUCE("min", kMin, int8_t);
REDUCE("max", kMax, uint8_t);
REDUCE("min", kMin, uint8_t);
REDUCE("any", kAny, uint8_t);
REDUCE("all", kAll, uint8_t);

// args: rows, results (int32), extremes. The rows come in number[4] tiles: of columns (kLast) or of rows;
// with more than one the tiles' results are combined.
template <Fold kOp, typename T, bool kLast>
static void Arg(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[4]);
  const uint32_t rows = t.number[0], cols = t.number[1], stride = t.number[2], tile = t.number[4];
  const uint32_t out = kLast ? rows : cols, whole = kLast ? cols : rows;
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, index, value, part_index, part_value, scratch;
  pipe.InitBuffer(from, rows * stride * sizeof(T));
  pipe.InitBuffer(index, out * 4);
  pipe.InitBuffer(value, out * sizeof(T));
  pipe.InitBuffer(part_index, out * 4);
  pipe.InitBuffer(part_value, out * sizeof(T));
  pipe.InitBuffer(scratch, kArgTmpBytes);
  const LocalTensor<T> a = from.Get<T>(), v = value.Get<T>(), pv = part_value.Get<T>();
  const LocalTensor<int32_t> i = index.Get<int32_t>(), pi = part_index.Get<int32_t>();
  const LocalTensor<uint8_t> tmp = scratch.Get<uint8_t>();
  In(a, args[0], (rows - 1) * stride + cols);
  PipeBarrier<PIPE_ALL>();
  if (tile >= whole) {
    if constexpr (kLast) ArgLast<kOp>(i, v, a, tmp, rows, cols, stride, t.number[3]);
    if constexpr (!kLast) ArgFirst<kOp>(i, v, a, tmp, rows, cols, stride, t.number[3]);
  } else {
    ArgIdentity<kOp>(i, v, out);
    for (uint32_t k = 0; k < whole; k += tile) {
      const uint32_t n = whole - k < tile ? whole - k : tile;
      PipeBarrier<PIPE_V>();
      if constexpr (kLast) ArgLast<kOp>(pi, pv, a[k], tmp, rows, n, stride, k);
      if constexpr (!kLast) ArgFirst<kOp>(pi, pv, a[k * stride], tmp, n, cols, stride, k);
      PipeBarrier<PIPE_V>();
      ArgCombine<kOp>(i, v, pi, pv, tmp, out);
    }
  }
  PipeBarrier<PIPE_ALL>();
  Out(args[1], i, out);
  Out(args[2], v, out);
}
#define ARGS(T)                                                     \
  KERNEL("arg_last_max_" #T, Arg<Fold::kMax, T, true>(args););   \
  KERNEL("arg_last_min_" #T, Arg<Fold::kMin, T, true>(args););   \
  KERNEL("arg_first_max_" #T, Arg<Fold::kMax, T, false>(args);); \
  KERNEL("arg_first_min_" #T, Arg<Fold::kMin, T, false>(args););
KERNEL("scratch_sizes", GlobalTensor<int32_t> g; g.SetGlobalBuffer(reinterpret_cast<int32_t*>(args[0]));
       g.SetValue(0, int32_t(kReduceTmpBytes)); g.SetValue(1, int32_t(kArgExtremeTmpBytes)););

// The index alone, as int32 or int64.
template <Fold kOp, typename T, typename I, bool kLast>
static void Extreme(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[3]);
  const uint32_t rows = t.number[0], cols = t.number[1], stride = t.number[2], out = kLast ? rows : cols;
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, index, scratch;
  pipe.InitBuffer(from, rows * stride * sizeof(T));
  pipe.InitBuffer(index, out * sizeof(I));
  pipe.InitBuffer(scratch, kArgExtremeTmpBytes);
  In(from.Get<T>(), args[0], (rows - 1) * stride + cols);
  PipeBarrier<PIPE_ALL>();
  const LocalTensor<uint8_t> tmp = scratch.Get<uint8_t>();
  if constexpr (kLast) ArgExtremeLast<kOp>(index.Get<I>(), from.Get<T>(), tmp, rows, cols, stride);
  if constexpr (!kLast) ArgExtremeFirst<kOp>(index.Get<I>(), from.Get<T>(), tmp, rows, cols, stride);
  PipeBarrier<PIPE_ALL>();
  Out(args[1], index.Get<I>(), out);
}
#define EXTREMES(T, I)                                                              \
  KERNEL("extreme_last_" #T "_" #I, Extreme<Fold::kMax, T, I, true>(args););   \
  KERNEL("extreme_first_" #T "_" #I, Extreme<Fold::kMax, T, I, false>(args););
EXTREMES(float, int64_t);
EXTREMES(int32_t, int32_t);
ARGS(float);
ARGS(int32_t);

// number[3]: the stride of dst. dst is stored row by row: what lies behind `rows` is undefined.
template <typename T>
static void Turn(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[3]);
  const uint32_t rows = t.number[0], cols = t.number[1], from_stride = t.number[2], to_stride = t.number[3];
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, to, scratch;
  pipe.InitBuffer(from, rows * from_stride * sizeof(T));
  pipe.InitBuffer(to, cols * to_stride * sizeof(T));
  pipe.InitBuffer(scratch, kTransposeTmpBytes);
  In(from.Get<T>(), args[0], (rows - 1) * from_stride + cols);
  PipeBarrier<PIPE_ALL>();
  TransposeTile(to.Get<T>(), from.Get<T>(), scratch.Get<uint8_t>(), rows, cols, from_stride, to_stride);
  PipeBarrier<PIPE_ALL>();
  for (uint32_t j = 0; j < cols; ++j) {
    GlobalTensor<T> g;
    g.SetGlobalBuffer(reinterpret_cast<T*>(args[1]));
    DataCopyPad(g[j * rows], to.Get<T>()[j * to_stride],
                DataCopyExtParams(1, rows * uint32_t(sizeof(T)), 0, 0, 0));
  }
}
KERNEL("turn_int16_t", Turn<int16_t>(args););
KERNEL("turn_half", Turn<half>(args););
KERNEL("turn_float", Turn<float>(args););
KERNEL("turn_uint32_t", Turn<uint32_t>(args););

// args: table, index, result, a flag (1: an index was out of range). number: rows of the result, cols, GM
// stride, limit. kRows: whole rows, dst rows padded; else one element each.
template <typename T, typename I, bool kRows>
static void Take(void** args) {
  GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[5]);
  const uint32_t rows = t.number[0], cols = t.number[1];
  const uint32_t row = RoundUp(cols * uint32_t(sizeof(T)), 32) / uint32_t(sizeof(T));
  TPipe pipe;
  TQue<TPosition::VECIN, 1> index_queue, data_queue;
  TBuf<TPosition::VECCALC> single;
  pipe.InitBuffer(index_queue, 1, rows * sizeof(I));
  pipe.InitBuffer(data_queue, 1, rows * row * sizeof(T));
  pipe.InitBuffer(single, rows * sizeof(T));
  GlobalTensor<T> table;
  table.SetGlobalBuffer(reinterpret_cast<T*>(args[0]));
  LocalTensor<I> index = index_queue.template AllocTensor<I>();
  In(index, args[1], rows);
  index_queue.EnQue(index);
  index = index_queue.template DeQue<I>();
  bool good;
  if constexpr (kRows) {
    LocalTensor<T> d = data_queue.template AllocTensor<T>();
    good = GatherRows(d, table, index, rows, cols, t.number[2], row, t.number[3]);
    data_queue.EnQue(d);
    d = data_queue.template DeQue<T>();
    PipeBarrier<PIPE_ALL>();
    if (t.number[3])
      for (uint32_t i = 0; i < rows; ++i) {
        GlobalTensor<T> g;
        g.SetGlobalBuffer(reinterpret_cast<T*>(args[2]));
        DataCopyPad(g[i * cols], d[i * row], DataCopyExtParams(1, cols * uint32_t(sizeof(T)), 0, 0, 0));
      }
    data_queue.FreeTensor(d);
  } else {
    good = GatherElements(single.Get<T>(), table, index, rows, t.number[2], t.number[3]);
    PipeBarrier<PIPE_ALL>();
    Out(args[2], single.Get<T>(), rows);
  }
  index_queue.FreeTensor(index);
  GlobalTensor<int32_t> flag;
  flag.SetGlobalBuffer(reinterpret_cast<int32_t*>(args[3]));
  StoreStatus(flag, GetBlockIdx(), !good);
}
#define TAKES(T, I)                                            \
  KERNEL("take_rows_" #T "_" #I, Take<T, I, true>(args);); \
  KERNEL("take_" #T "_" #I, Take<T, I, false>(args););
TAKES(float, int32_t);
TAKES(float, int64_t);
TAKES(half, int32_t);
TAKES(int8_t, int64_t);
TAKES(int64_t, int32_t);

// Broken uses of the helpers: 40 rows of 16 floats.
template <bool kFilled, bool kWaits, uint32_t kTmp>
static void Careless(void** args) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, to, scratch;
  pipe.InitBuffer(from, 40 * 64);
  pipe.InitBuffer(to, 40 * 4);
  pipe.InitBuffer(scratch, kTmp);
  const LocalTensor<float> a = from.Get<float>();
  Duplicate(a, 1.0f, kFilled ? 40 * 16 : 39 * 16 + 8);
  PipeBarrier<PIPE_V>();
  ReduceLast<Fold::kMax>(to.Get<float>(), a, scratch.Get<uint8_t>(), 40, 16, 16);
  if (kWaits) PipeBarrier<PIPE_V>();
  Muls(to.Get<float>(), to.Get<float>(), 1.0f, 40);
  PipeBarrier<PIPE_ALL>();
  Out(args[0], to.Get<float>(), 40);
}
KERNEL("reduce_good", (Careless<true, true, kReduceTmpBytes>(args)););
KERNEL("reduce_short_scratch", (Careless<true, true, 4096>(args)););
KERNEL("reduce_garbage", (Careless<false, true, kReduceTmpBytes>(args)););
KERNEL("reduce_no_barrier", (Careless<true, false, kReduceTmpBytes>(args)););
