// Why: the untyped entry points of the archive. A templated API function (vector.h, copy.h, advanced.h) does
// nothing but name the operation and the dtype and forward; checks, semantics and the trace record live
// behind these. Invariant: dst, src are UB views; `count` is in elements; `dtype` is that of dst unless two
// are given.
#pragma once
#include "tensor.h"

namespace twin {
inline namespace TWIN_ABI {

enum UnaryOp : uint8_t {
  kAbs,
  kExp,
  kLn,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kRelu,
  kNot,
  // composite functions of the high-level API: they work on own scratch, so no operand may overlap another
  kTanh,
  kSigmoid,
  kErf,
  kErfc,
  kLog,
  kLog2,
  kLog10,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kSign,
  kFrac,
  kGelu,
  kUnaryOps
};
enum BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kAnd,
  kOr,
  kAddRelu,
  kSubRelu,
  kMulAddDst,
  kFusedMulAdd,
  kFusedMulAddRelu,
  kPower,
  kFmod,
  kXor,
  kBinaryOps
};
enum ScalarOp : uint8_t {
  kAdds,
  kMuls,
  kMaxs,
  kMins,
  kLeakyRelu,
  kShiftLeft,
  kShiftRight,
  kShiftRightRound,
  kAxpy,
  kScalarOps
};
enum ReduceOp : uint8_t { kSum, kMaximum, kMinimum, kPairSum };

// How a repeat-form call states its mask: n leading lanes, two words of bits, or the mask register as it is.
struct MaskSpec {
  enum Kind : uint8_t { kLeading, kBits, kRegister } kind;
  uint64_t lo, hi;
};
struct Strides {  // of one operand, in 32 B blocks
  uint16_t block, repeat;
};

void Unary(UnaryOp op, DType t, const TensorRef& d, const TensorRef& s, uint64_t count, Site at);
void UnaryTmp(UnaryOp op, DType t, const TensorRef& d, const TensorRef& s, const TensorRef& tmp,
              uint64_t count, Site at);
void Binary(BinaryOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& a, const TensorRef& b,
            uint64_t count, Site at);
void BinaryTmp(BinaryOp op, DType t, const TensorRef& d, const TensorRef& a, const TensorRef& b,
               const TensorRef& tmp, uint64_t count, Site at);
void Scalar(ScalarOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& s, const void* scalar,
            uint64_t count, Site at);
void UnaryRepeat(UnaryOp op, DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat,
                 Strides ds, Strides ss, Site at);
void BinaryRepeat(BinaryOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& a,
                  const TensorRef& b, MaskSpec m, uint32_t repeat, Strides ds, Strides as, Strides bs,
                  Site at);
void ScalarRepeat(ScalarOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& s,
                  const void* scalar, MaskSpec m, uint32_t repeat, Strides ds, Strides ss, Site at);
void Convert(DType dt, DType st, const TensorRef& d, const TensorRef& s, AscendC::RoundMode mode,
             uint64_t count, Site at);
void ConvertRepeat(DType dt, DType st, const TensorRef& d, const TensorRef& s, AscendC::RoundMode mode,
                   MaskSpec m, uint32_t repeat, Strides ds, Strides ss, Site at);
void Fill(DType t, const TensorRef& d, const void* scalar, uint64_t count, Site at);
void FillRepeat(DType t, const TensorRef& d, const void* scalar, MaskSpec m, uint32_t repeat, Strides ds,
                Site at);

void CompareBits(DType t, const TensorRef& d, const TensorRef& a, const TensorRef& b, AscendC::CMPMODE mode,
                 uint64_t count, Site at);
void CompareScalarBits(DType t, const TensorRef& d, const TensorRef& a, const void* scalar,
                       AscendC::CMPMODE mode, uint64_t count, Site at);
void CompareRepeat(DType t, const TensorRef& d, const TensorRef& a, const TensorRef* b, const void* scalar,
                   AscendC::CMPMODE mode, MaskSpec m, uint32_t repeat, Strides as, Strides bs, Site at);
// b == nullptr: the scalar form.
void SelectBits(DType t, const TensorRef& d, const TensorRef& mask, const TensorRef& a, const TensorRef* b,
                const void* scalar, AscendC::SELMODE mode, uint64_t count, Site at);
void SelectRepeat(DType t, const TensorRef& d, const TensorRef& mask, const TensorRef& a, const TensorRef* b,
                  const void* scalar, AscendC::SELMODE mode, MaskSpec m, uint32_t repeat, Strides ds,
                  Strides as, Strides bs, Site at);
void SelectByteMask(DType t, DType mask_t, const TensorRef& d, const TensorRef* a, const TensorRef* b,
                    const void* scalar, const TensorRef& mask, const TensorRef& tmp, uint64_t count, Site at);

void CopyRepeat(DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat, Strides ds,
                Strides ss, Site at);
void BlockBroadcast(DType t, const TensorRef& d, const TensorRef& s, uint32_t repeat, uint16_t block_stride,
                    uint16_t repeat_stride, Site at);
void VecIndex(DType t, const TensorRef& d, const void* first, const void* step, uint64_t count, Site at);
void GatherElements(DType t, const TensorRef& d, const TensorRef& s, const TensorRef& offsets, uint32_t base,
                    uint64_t count, Site at);
void GatherBlocks(DType t, const TensorRef& d, const TensorRef& s, const TensorRef& offsets, uint32_t repeat,
                  Strides ds, Site at);
// pattern_tensor == nullptr: `pattern` 1..7.
void GatherByMask(DType t, const TensorRef& d, const TensorRef& s, const TensorRef* pattern_tensor,
                  uint8_t pattern, bool counter, uint32_t mask, const AscendC::GatherMaskParams& p,
                  uint64_t* kept, Site at);
void Transpose16(DType t, const TensorRef& d, const TensorRef& s, Site at);
void To5HD(DType t, const uint64_t* dst, const uint64_t* src, const AscendC::TransDataTo5HDParams& p,
           Site at);

void ReduceWhole(ReduceOp op, DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat,
                 uint32_t dst_stride, Strides ss, AscendC::ReduceOrder order, Site at);
void ReduceBlocks(ReduceOp op, DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat,
                  uint32_t dst_stride, Strides ss, Site at);
void ReduceCount(ReduceOp op, DType t, const TensorRef& d, const TensorRef& s, const TensorRef& work,
                 uint64_t count, bool index, Site at);

void SetMaskMode(bool counter, Site at);
void SetMaskRegister(uint64_t hi, uint64_t lo, Site at);
void SetDeq(float scale, Site at);
void SetAtomic(DType t, bool on, Site at);

void CopyIn(DType t, const TensorRef& d, const GmRef& s, uint64_t count, Site at);
void CopyOut(DType t, const GmRef& d, const TensorRef& s, uint64_t count, Site at);
void CopyUb(DType t, const TensorRef& d, const TensorRef& s, uint64_t count, Site at);
void CopyInBlocks(const TensorRef& d, const GmRef& s, const AscendC::DataCopyParams& p, Site at);
void CopyOutBlocks(const GmRef& d, const TensorRef& s, const AscendC::DataCopyParams& p, Site at);
void CopyUbBlocks(const TensorRef& d, const TensorRef& s, const AscendC::DataCopyParams& p, Site at);
void PadIn(DType t, const TensorRef& d, const GmRef& s, const AscendC::DataCopyExtParams& p, bool pad,
           uint8_t left, uint8_t right, const void* value, Site at);
void PadOut(DType t, const GmRef& d, const TensorRef& s, const AscendC::DataCopyExtParams& p, Site at);

}  // namespace TWIN_ABI
}  // namespace twin
