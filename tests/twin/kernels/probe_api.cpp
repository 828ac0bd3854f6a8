// Why: a probe for each instruction of the twin, count form and repeat form.
#include "probe.h"

#define UNARY(T, Op) PROBE1(#Op "_" #T, T, T, 0, Op(dst, a, int32_t(n)));
#define BINARY(T, Op) PROBE2(#Op "_" #T, T, T, T, 0, Op(dst, a, b, int32_t(n)));
#define SCALAR(T, Op) PROBE1(#Op "_" #T, T, T, 0, Op(dst, a, static_cast<T>(t.value[0]), int32_t(n)));
#define FLOATS(M, Op) \
  M(float, Op);       \
  M(half, Op);
#define NUMBERS(M, Op) \
  M(float, Op);        \
  M(half, Op);         \
  M(int32_t, Op);      \
  M(int16_t, Op);
FLOATS(UNARY, Abs);
FLOATS(UNARY, Exp);
FLOATS(UNARY, Ln);
FLOATS(UNARY, Sqrt);
FLOATS(UNARY, Rsqrt);
FLOATS(UNARY, Reciprocal);
FLOATS(UNARY, Relu);
UNARY(int32_t, Relu);
UNARY(int16_t, Not);
UNARY(uint16_t, Not);
NUMBERS(BINARY, Add);
NUMBERS(BINARY, Sub);
NUMBERS(BINARY, Mul);
NUMBERS(BINARY, Max);
NUMBERS(BINARY, Min);
FLOATS(BINARY, Div);
BINARY(int16_t, And);
BINARY(uint16_t, Or);
FLOATS(BINARY, AddRelu);
FLOATS(BINARY, SubRelu);
BINARY(int16_t, AddRelu);
BINARY(int16_t, SubRelu);
NUMBERS(SCALAR, Adds);
NUMBERS(SCALAR, Muls);
NUMBERS(SCALAR, Maxs);
NUMBERS(SCALAR, Mins);
FLOATS(SCALAR, LeakyRelu);
SCALAR(int16_t, ShiftLeft);
SCALAR(uint16_t, ShiftLeft);
SCALAR(int32_t, ShiftLeft);
SCALAR(uint32_t, ShiftLeft);
SCALAR(int16_t, ShiftRight);
SCALAR(uint16_t, ShiftRight);
SCALAR(int32_t, ShiftRight);
SCALAR(uint32_t, ShiftRight);
PROBE1("ShiftRightRound_int32_t", int32_t, int32_t, 0,
       ShiftRight(dst, a, int32_t(t.value[0]), int32_t(n), true));
PROBE2("MulAddDst_float", float, float, float, 0, Duplicate(dst, 3.0f, int32_t(n)); PipeBarrier<PIPE_V>();
       MulAddDst(dst, a, b, int32_t(n)));
PROBE2("FusedMulAdd_float", float, float, float, 0, Duplicate(dst, 3.0f, int32_t(n)); PipeBarrier<PIPE_V>();
       FusedMulAdd(dst, a, b, int32_t(n)));
PROBE1("Axpy_float", float, float, 0, Duplicate(dst, 3.0f, int32_t(n)); PipeBarrier<PIPE_V>();
       Axpy(dst, a, 2.0f, int32_t(n)));
PROBE1("Axpy_half_float", float, half, 0, Duplicate(dst, 3.0f, int32_t(n)); PipeBarrier<PIPE_V>();
       Axpy(dst, a, half(2.0f), int32_t(n)));

#define MATH(Op)                                                           \
  PROBE1("adv_" #Op "_float", float, float, 16 * 256, Op(dst, a, tmp, n)); \
  PROBE1("adv_" #Op "_half", half, half, 16 * 256, Op(dst, a, tmp, n));
MATH(Tanh);
MATH(Sigmoid);
MATH(Erf);
MATH(Erfc);
MATH(Sin);
MATH(Cos);
MATH(Tan);
MATH(Asin);
MATH(Acos);
MATH(Atan);
MATH(Sinh);
MATH(Cosh);
MATH(Asinh);
MATH(Acosh);
MATH(Atanh);
MATH(Floor);
MATH(Ceil);
MATH(Trunc);
MATH(Round);
MATH(Sign);
MATH(Frac);
MATH(Log2);
PROBE1("adv_Log_float", float, float, 0, Log(dst, a, n));
PROBE1("adv_Log10_float", float, float, 0, Log10(dst, a, n));
PROBE2("adv_Power_float", float, float, float, 4096, Power(dst, a, b, tmp, n));
PROBE2("adv_Fmod_float", float, float, float, 4096, Fmod(dst, a, b, tmp, n));
PROBE2("adv_Xor_int16_t", int16_t, int16_t, int16_t, 4096, Xor(dst, a, b, tmp, n));

#define CAST(D, S)                                                                      \
  PROBE1("Cast_" #S "_" #D, D, S, 0, SetDeqScale(half(1.0f));                           \
         Cast(dst, a, static_cast<RoundMode>(t.number[0]), n));                         \
  PROBE1("CastRepeat_" #S "_" #D, D, S, 0, SetDeqScale(half(1.0f));                     \
         constexpr uint32_t wide = sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D);       \
         constexpr uint32_t lanes = 256 / wide; for (uint32_t i = 0; i < n; i += lanes) \
             Cast(dst[i], a[i], static_cast<RoundMode>(t.number[0]),                    \
                  uint64_t(n - i < lanes ? n - i : lanes), uint8_t(1), UnaryRepeatParams(1, 1, 8, 8)));
CAST(half, int8_t);
CAST(half, uint8_t);
CAST(half, int16_t);
CAST(float, int16_t);
CAST(int8_t, half);
CAST(uint8_t, half);
CAST(int16_t, half);
CAST(int32_t, half);
CAST(float, half);
CAST(float, bfloat16_t);
CAST(int32_t, bfloat16_t);
CAST(float, float);
CAST(half, float);
CAST(bfloat16_t, float);
CAST(int16_t, float);
CAST(int32_t, float);
CAST(int64_t, float);
CAST(float, int32_t);
CAST(int16_t, int32_t);
CAST(int64_t, int32_t);
CAST(half, int32_t);
CAST(int32_t, int64_t);
CAST(float, int64_t);

// Repeat forms: number = mask, repeats, strides; a tile of 2048 elements, dst zeroed first.
template <typename T>
static void Clear(const LocalTensor<T>& d) {
  Duplicate(d.template ReinterpretCast<int16_t>(), int16_t(0), int32_t(d.GetSize() * sizeof(T) / 2));
  PipeBarrier<PIPE_V>();
}
PROBE2("AddRepeat_float", float, float, float, 0, Clear(dst);
       Add(dst, a, b, uint64_t(t.number[0]), uint8_t(t.number[1]),
           BinaryRepeatParams(t.number[2], t.number[3], t.number[3], t.number[4], t.number[5], t.number[5])));
PROBE2("AddBits_half", half, half, half, 0, Clear(dst);
       uint64_t mask[2] = {uint64_t(t.number[0]), uint64_t(t.number[1])};
       Add(dst, a, b, mask, uint8_t(4), BinaryRepeatParams()));
PROBE2("AddCounter_float", float, float, float, 0, Clear(dst); SetMaskCount();
       SetVectorMask<float, MaskMode::COUNTER>(0, t.number[0]);
       Add<float, false>(dst, a, b, MASK_PLACEHOLDER, uint8_t(1), BinaryRepeatParams()); SetMaskNorm();
       ResetMask());
PROBE1("AbsRepeat_float", float, float, 0, Clear(dst);
       Abs(dst, a, uint64_t(t.number[0]), uint8_t(t.number[1]),
           UnaryRepeatParams(t.number[2], t.number[3], t.number[4], t.number[5])));
PROBE1("MulsRepeat_half", half, half, 0, Clear(dst);
       Muls(dst, a, half(2.0f), uint64_t(t.number[0]), uint8_t(t.number[1]),
            UnaryRepeatParams(t.number[2], t.number[3], t.number[4], t.number[5])));
PROBE1("DuplicateRepeat_float", float, float, 0, (void)a; Clear(dst);
       Duplicate(dst, 5.0f, uint64_t(t.number[0]), uint8_t(t.number[1]), uint16_t(t.number[2]),
                 uint8_t(t.number[4])));
PROBE1("CopyRepeat_float", float, float, 0, Clear(dst);
       Copy(dst, a, uint64_t(t.number[0]), uint8_t(t.number[1]),
            CopyRepeatParams(t.number[2], t.number[3], t.number[4], t.number[5])));
PROBE1("Brcb_float", float, float, 0, Brcb(dst, a, uint8_t(n / 64), BrcbRepeatParams(1, 8)));
PROBE1("Brcb_half", half, half, 0, Brcb(dst, a, uint8_t(n / 128), BrcbRepeatParams(1, 8)));

// Packed bits: results of n bits land in n bytes, the rest zero.
#define COMPARE(T)                                                                                 \
  PROBE2("Compare_" #T, uint8_t, T, T, 0, Clear(dst);                                              \
         Compare(dst, a, b, static_cast<CMPMODE>(t.number[0]), n));                                \
  PROBE1("CompareScalar_" #T, uint8_t, T, 0, Clear(dst);                                           \
         CompareScalar(dst, a, static_cast<T>(t.value[0]), static_cast<CMPMODE>(t.number[0]), n)); \
  PROBE2("CompareRepeat_" #T, uint8_t, T, T, 0, Clear(dst);                                        \
         Compare(dst, a, b, static_cast<CMPMODE>(t.number[0]), uint64_t(256 / sizeof(T)),          \
                 uint8_t(n * sizeof(T) / 256), BinaryRepeatParams()));
COMPARE(float);
COMPARE(half);
COMPARE(int32_t);
#define SELECT(T)                                                                                       \
  PROBE3("Select_" #T, T, uint8_t, T, T, 0, Select(dst, a, b, c, SELMODE::VSEL_TENSOR_TENSOR_MODE, n)); \
  PROBE2("SelectScalar_" #T, T, uint8_t, T, 0,                                                          \
         Select(dst, a, b, static_cast<T>(7.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE, n));                 \
  PROBE3("SelectSame_" #T, T, uint8_t, T, T, 0, Select(dst, a, b, c, SELMODE::VSEL_CMPMASK_SPR, n));    \
  PROBE3("SelectRepeat_" #T, T, uint8_t, T, T, 0,                                                       \
         Select(dst, a, b, c, SELMODE::VSEL_TENSOR_TENSOR_MODE, uint64_t(256 / sizeof(T)),              \
                uint8_t(n * sizeof(T) / 256), BinaryRepeatParams()));
SELECT(float);
SELECT(half);
PROBE2("SelectBytes_float", float, uint8_t, float, 4096, SelectWithBytesMask(dst, b, 7.0f, a, tmp, n));

// Reductions: the result in front, the rest zero.
#define REDUCE(T)                                                                                           \
  PROBE1("WholeReduceSum_" #T, T, T, 0, Clear(dst);                                                         \
         WholeReduceSum(dst, a, t.number[0], t.number[1], 1, 1, 8));                                        \
  PROBE1("WholeReduceMax_" #T, T, T, 0, Clear(dst);                                                         \
         WholeReduceMax(dst, a, t.number[0], t.number[1], 1, 1, 8, static_cast<ReduceOrder>(t.number[2]))); \
  PROBE1("WholeReduceMin_" #T, T, T, 0, Clear(dst);                                                         \
         WholeReduceMin(dst, a, t.number[0], t.number[1], 1, 1, 8, static_cast<ReduceOrder>(t.number[2]))); \
  PROBE1("BlockReduceSum_" #T, T, T, 0, Clear(dst);                                                         \
         BlockReduceSum(dst, a, t.number[1], t.number[0], 1, 1, 8));                                        \
  PROBE1("BlockReduceMax_" #T, T, T, 0, Clear(dst);                                                         \
         BlockReduceMax(dst, a, t.number[1], t.number[0], 1, 1, 8));                                        \
  PROBE1("PairReduceSum_" #T, T, T, 0, Clear(dst);                                                          \
         PairReduceSum(dst, a, t.number[1], t.number[0], 1, 1, 8));                                         \
  PROBE1("ReduceSum_" #T, T, T, 2048, Clear(dst); ReduceSum(dst, a, tmp.ReinterpretCast<T>(), n));          \
  PROBE1("ReduceMax_" #T, T, T, 2048, Clear(dst);                                                           \
         ReduceMax(dst, a, tmp.ReinterpretCast<T>(), n, t.number[0] != 0));                                 \
  PROBE1("ReduceMin_" #T, T, T, 2048, Clear(dst);                                                           \
         ReduceMin(dst, a, tmp.ReinterpretCast<T>(), n, t.number[0] != 0));
REDUCE(float);
REDUCE(half);

// Movement.
PROBE1("CopyUb_float", float, float, 0, Clear(dst); DataCopy(dst, a, n));
PROBE1("CopyUbBlocks_float", float, float, 0, Clear(dst); DataCopy(dst, a, DataCopyParams(4, 2, 1, 3)));
PROBE1("CreateVecIndex_int32_t", int32_t, int32_t, 0, (void)a; CreateVecIndex(dst, int32_t(t.number[0]), n));
PROBE1("CreateVecIndex_half", half, half, 0, (void)a; CreateVecIndex(dst, half(t.number[0]), n));
PROBE1("ArithProgression_float", float, float, 0, (void)a; ArithProgression(dst, 2.0f, 0.5f, int32_t(n)));
PROBE2("Gather_float", float, float, uint32_t, 0, Gather(dst, a, b, uint32_t(t.number[0]), n));
PROBE2("Gather_half", half, half, uint32_t, 0, Gather(dst, a, b, uint32_t(t.number[0]), n));
PROBE2("Gatherb_float", float, float, uint32_t, 0, Clear(dst);
       Gatherb(dst, a, b, uint8_t(4), GatherRepeatParams(1, 8)));
#define GATHER_MASK(T)                                                                     \
  PROBE1("GatherMask_" #T, T, T, 0, Clear(dst); uint64_t kept = 0;                         \
         GatherMask(dst, a, uint8_t(t.number[0]), t.number[1] != 0, uint32_t(t.number[2]), \
                    GatherMaskParams(1, t.number[3], t.number[4], 0), kept);               \
         PipeBarrier<PIPE_ALL>(); dst.SetValue(2047, kept); PipeBarrier<PIPE_ALL>());
GATHER_MASK(float);
GATHER_MASK(half);
GATHER_MASK(int32_t);
PROBE2("GatherMaskTensor_float", float, float, uint32_t, 0, Clear(dst); uint64_t kept = 0;
       GatherMask(dst, a, b, false, 0, GatherMaskParams(1, uint16_t(n / 64), 8, 0), kept));
PROBE1("Transpose_half", half, half, 0, Clear(dst); Transpose(dst, a));
#define TO5HD(T)                                                                    \
  PROBE1(                                                                           \
      "To5HD_" #T, T, T, 0, Clear(dst); LocalTensor<T> d[16]; LocalTensor<T> s[16]; \
      for (int i = 0; i < 16; ++i) {                                                \
        d[i] = dst[i * 32 / sizeof(T)];                                             \
        s[i] = a[i * 32 / sizeof(T)];                                               \
      } TransDataTo5HD<T>(d, s, TransDataTo5HDParams(false, false, 1, 0, 0)));
TO5HD(half);
TO5HD(float);
TO5HD(int8_t);

// DataCopy in whole blocks both ways, with gaps.
KERNEL("copy_blocks", TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 4096); LocalTensor<float> t = b.Get<float>();
       GlobalTensor<float> in, out; in.SetGlobalBuffer(reinterpret_cast<float*>(args[0]), 512);
       out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 512); Duplicate(t, 0.0f, 1024);
       PipeBarrier<PIPE_ALL>(); DataCopy(t, in, DataCopyParams(4, 2, 1, 3)); PipeBarrier<PIPE_ALL>();
       DataCopy(out, t, DataCopyParams(4, 2, 3, 2)); PipeBarrier<PIPE_ALL>(); DataCopy(out[256], t, 100););
KERNEL("pad_values", TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 4096); LocalTensor<float> t = b.Get<float>();
       GlobalTensor<float> in, out; in.SetGlobalBuffer(reinterpret_cast<float*>(args[0]), 512);
       out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 512); Duplicate(t, 0.0f, 1024);
       PipeBarrier<PIPE_ALL>(); DataCopyPad(t, in, {3, 5 * 4, 8, 1, 0}, {true, 1, 2, -3.0f});
       PipeBarrier<PIPE_ALL>(); DataCopyPad(t[128], in, {2, 3 * 4, 4, 0, 0}, {false, 0, 0, 0});
       PipeBarrier<PIPE_ALL>(); DataCopyPad(out, t, {1, 1024, 0, 0, 0}););
// A small pipeline for the trace.
KERNEL("traced", TPipe pipe; TQue<TPosition::VECIN, 1> qi; TQue<TPosition::VECOUT, 1> qo;
       pipe.InitBuffer(qi, 2, 1024); pipe.InitBuffer(qo, 2, 1024); GlobalTensor<float> in, out;
       in.SetGlobalBuffer(reinterpret_cast<float*>(args[0]), 256);
       out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 256);
       LocalTensor<float> t = qi.AllocTensor<float>();
       DataCopyPad(t, in, {2, 400, 16, 0, 0}, {false, 0, 0, 0}); qi.EnQue(t);
       LocalTensor<float> u = qi.DeQue<float>(); LocalTensor<float> v = qo.AllocTensor<float>();
       Abs(v, u, 100); PipeBarrier<PIPE_V>(); Muls(v, v, 2.0f, 100); qi.FreeTensor(u); qo.EnQue(v);
       LocalTensor<float> w = qo.DeQue<float>(); DataCopyPad(out, w, {1, 400, 0, 0, 0}); qo.FreeTensor(w););
KERNEL("add_on_two_threads", TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 256);
       LocalTensor<float> t = b.Get<float>(); GlobalTensor<float> in, out;
       in.SetGlobalBuffer(reinterpret_cast<float*>(args[0]), 64);
       out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 64); const uint32_t at = GetBlockIdx() * 32;
       DataCopyPad(t, in[at], {1, 128, 0, 0, 0}, {false, 0, 0, 0}); SyncAll(); Add(t, t, t, 32);
       PipeBarrier<PIPE_ALL>(); DataCopyPad(out[at], t, {1, 128, 0, 0, 0}););
