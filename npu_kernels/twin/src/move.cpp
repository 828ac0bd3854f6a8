// Why: data movement inside UB: block copies, Copy, Brcb, index generation, gathers, transposes. All run on
// the vector pipe and move bits, so their poison moves with them.
#include <algorithm>

#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

namespace {
void NeedWord(DType t) {  // 16- and 32-bit types
  if (t == kNone || (Width(t) != 2 && Width(t) != 4)) UnsupportedType(t);
}
}  // namespace

void CopyUb(DType t, const TensorRef& d, const TensorRef& s, uint64_t count, Site at) {
  Core& c = Enter("DataCopy", at);
  const uint64_t bytes = count * Width(t) / kBlock * kBlock;
  if (!bytes) return;
  const CountOperand dst{&d, bytes, "dst"}, src{&s, bytes, "src"};
  StartCount(c, dst, &src, 1, true);
  CopyGood(c, d.addr, s.addr, bytes);
  std::memmove(c.ub + d.addr, c.ub + s.addr, bytes);
  FinishCount(c, dst, &src, 1);
  TraceVector(c, t, d, bytes / Width(t), Width(t), 0, nullptr, 0);
}

void CopyUbBlocks(const TensorRef& d, const TensorRef& s, const AscendC::DataCopyParams& p, Site at) {
  Core& c = Enter("DataCopy", at);
  if (p.blockCount > 4095) Violate("field over its limit", "blockCount is %u, at most 4095", p.blockCount);
  if (!p.blockCount || !p.blockLen) return;
  const uint64_t bytes = uint64_t(p.blockLen) * kBlock;
  const uint64_t ss = bytes + uint64_t(p.srcStride) * kBlock, ds = bytes + uint64_t(p.dstStride) * kBlock;
  CheckView(c, d, (p.blockCount - 1) * ds + bytes, kBlock, "dst");
  CheckView(c, s, (p.blockCount - 1) * ss + bytes, kBlock, "src");
  Begin(c, PIPE_V);
  for (uint32_t i = 0; i < p.blockCount; ++i) {
    CheckRead(c, PIPE_V, s.addr + i * ss, bytes, "src");
    CheckWrite(c, PIPE_V, d.addr + i * ds, bytes, "dst");
    CheckOverlap(d.addr + i * ds, bytes, s.addr + i * ss, bytes, true, "src");
#if TWIN_CHECK
    for (uint32_t b = (s.addr + i * ss) / kBlock; b < (s.addr + i * ss + bytes) / kBlock; ++b)
      if (c.wrote[PIPE_V][b] == c.issued[PIPE_V])
        Violate("overlap", "block %u of src was written by the same instruction", i);
#endif
    CopyGood(c, d.addr + i * ds, s.addr + i * ss, bytes);
    std::memmove(c.ub + d.addr + i * ds, c.ub + s.addr + i * ss, bytes);
    MarkRead(c, PIPE_V, s.addr + i * ss, bytes);
    MarkWrite(c, PIPE_V, d.addr + i * ds, bytes);
  }
  TraceVector(c, kU8, d, bytes * p.blockCount, 1, p.blockCount, nullptr, 0);
}

void CopyRepeat(DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat, Strides ds,
                Strides ss, Site at) {
  Core& c = Enter("Copy", at);
  NeedWord(t);
  if (ds.repeat > 4095 || ss.repeat > 4095)
    Violate("field over its limit", "repeat size %u, at most 4095", std::max(ds.repeat, ss.repeat));
  const uint32_t w = Width(t);
  LanePlan p;
  if (c.counter_mode) {  // for Copy the mask counts the elements of each repeat, not of all
    p = LanePlan{};
    p.lanes = Lanes(w);
    p.repeats = repeat;
    if (m.lo > p.lanes)
      Violate("mask", "Copy in Counter mode with %llu elements a repeat", (unsigned long long)m.lo);
    p.lo = m.lo >= 64 ? ~0ull : (1ull << m.lo) - 1;
    p.hi = m.lo <= 64 ? 0 : m.lo >= 128 ? ~0ull : (1ull << (m.lo - 64)) - 1;
  } else {
    p = ResolveMask(c, m, repeat, w);
  }
  if (!p.repeats || (!p.lo && !p.hi)) return;
  const RepeatOperand dst{&d, ds, w, "dst"}, src{&s, ss, w, "src"};
  CheckRepeatView(c, dst, p);
  CheckRepeatView(c, src, p);
  Begin(c, PIPE_V);
  for (uint32_t r = 0; r < p.repeats; ++r) {
    CheckRepeatRead(c, src, p, r, false);
    CheckRepeatWrite(c, dst, p, r);
    CheckRepeatOverlap(dst, src, p, r);
    const uint32_t span = p.Span(r), per_block = kBlock / w;
    for (uint32_t lane = 0; lane < span; lane += per_block) {
      const uint32_t n = std::min(per_block, span - lane);
      if (!p.Dense(r)) {
        for (uint32_t i = lane; i < lane + n; ++i) {
          if (!p.Active(r, i)) continue;
          CopyGood(c, dst.Address(r, i), src.Address(r, i), w);
          std::memcpy(c.ub + dst.Address(r, i), c.ub + src.Address(r, i), w);
        }
        continue;
      }
      CopyGood(c, dst.Address(r, lane), src.Address(r, lane), n * w);
      std::memmove(c.ub + dst.Address(r, lane), c.ub + src.Address(r, lane), n * w);
    }
    MarkRepeat(c, src, p, r, false);
    MarkRepeat(c, dst, p, r, true);
  }
  const Strides strides[2] = {ds, ss};
  TraceVector(c, t, d, uint64_t(p.Span(0)) * p.repeats, w, p.repeats, strides, 2);
}

void BlockBroadcast(DType t, const TensorRef& d, const TensorRef& s, uint32_t repeat, uint16_t block_stride,
                    uint16_t repeat_stride, Site at) {
  Core& c = Enter("Brcb", at);
  NeedWord(t);
  if (block_stride == 0) Violate("stride", "dstBlkStride 0 writes the eight blocks over each other");
  if (!repeat) return;
  const uint32_t w = Width(t);
  const uint64_t end = (uint64_t(repeat - 1) * repeat_stride + 7u * block_stride + 1) * kBlock;
  CheckView(c, d, end, kBlock, "dst");
  CheckView(c, s, uint64_t(repeat) * 8 * w, kBlock, "src");
  CheckOverlap(d.addr, end, s.addr, uint64_t(repeat) * 8 * w, false, "src");
  Begin(c, PIPE_V);
  CheckRead(c, PIPE_V, s.addr, uint64_t(repeat) * 8 * w, "src");
  for (uint32_t e = 0; e < repeat * 8; ++e) {
    const uint32_t to = d.addr + ((e / 8) * repeat_stride + (e % 8) * block_stride) * kBlock;
    CheckWrite(c, PIPE_V, to, kBlock, "dst");
    for (uint32_t i = 0; i < kBlock; i += w) std::memcpy(c.ub + to + i, c.ub + s.addr + e * w, w);
    SetGood(c, to, kBlock, BytesGood(c, s.addr + e * w, w));
    MarkWrite(c, PIPE_V, to, kBlock);
  }
  MarkRead(c, PIPE_V, s.addr, uint64_t(repeat) * 8 * w);
  const Strides strides[1] = {{block_stride, repeat_stride}};
  TraceVector(c, t, d, uint64_t(repeat) * 8 * kBlock / w, w, repeat, strides, 1);
}

namespace {
template <typename T, typename S>
void Progression(void* d, const void* first, const void* step, uint64_t n) {
  T f, s, *to = static_cast<T*>(d);
  std::memcpy(&f, first, sizeof f);
  std::memcpy(&s, step, sizeof s);
  for (uint64_t i = 0; i < n; ++i) to[i] = static_cast<T>(S(f) + S(s) * S(i));
}
}  // namespace

void VecIndex(DType t, const TensorRef& d, const void* first, const void* step, uint64_t count, Site at) {
  Core& c = Enter("CreateVecIndex", at);
  if (t != kI16 && t != kI32 && t != kF16 && t != kF32) UnsupportedType(t);
  if (!count) return;
  const CountOperand dst{&d, count * Width(t), "dst"};
  StartCount(c, dst, nullptr, 0, true);
  SetGood(c, d.addr, dst.bytes, true);
  void* to = c.ub + d.addr;
  if (t == kI16) Progression<uint16_t, uint32_t>(to, first, step, count);
  if (t == kI32) Progression<uint32_t, uint32_t>(to, first, step, count);
  if (t == kF16) Progression<half, float>(to, first, step, count);
  if (t == kF32) Progression<float, float>(to, first, step, count);
  FinishCount(c, dst, nullptr, 0);
  TraceVector(c, t, d, count, Width(t), 0, nullptr, 0);
}

void GatherElements(DType t, const TensorRef& d, const TensorRef& s, const TensorRef& offsets, uint32_t base,
                    uint64_t count, Site at) {
  Core& c = Enter("Gather", at);
  NeedWord(t);
  if (!count) return;
  const uint32_t w = Width(t);
  const CountOperand dst{&d, count * w, "dst"};
  const CountOperand src[1] = {{&offsets, count * 4, "offsets"}};
  StartCount(c, dst, src, 1, false);
  CheckView(c, s, 0, kBlock, "src");
  if (!AllGood(c, offsets.addr, count * 4))
    Violate("uninitialized UB", "offset %u was never written",
            (FirstBad(c, offsets.addr, count * 4) - offsets.addr) / 4);
  uint32_t low = ~0u, high = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t at_byte;
    std::memcpy(&at_byte, c.ub + offsets.addr + i * 4, 4);
    at_byte += base;
    if (at_byte % w)
      Violate("misaligned UB address", "byte offset %u of element %llu", at_byte, (unsigned long long)i);
    low = std::min(low, at_byte);
    high = std::max(high, at_byte + w);
    if (s.addr + high > kUbBytes)
      Violate("UB overflow", "byte offset %u of element %llu is outside UB", at_byte, (unsigned long long)i);
    std::memcpy(c.ub + d.addr + i * w, c.ub + s.addr + at_byte, w);
    SetGood(c, d.addr + i * w, w, BytesGood(c, s.addr + at_byte, w));
  }
  TensorRef touched = s;
  touched.addr += low / kBlock * kBlock;
  CheckView(c, touched, high - low / kBlock * kBlock, kBlock, "src");
  CheckOverlap(d.addr, count * w, touched.addr, high - low / kBlock * kBlock, false, "src");
  CheckRead(c, PIPE_V, s.addr + low, high - low, "src");
  MarkRead(c, PIPE_V, s.addr + low, high - low);
  FinishCount(c, dst, src, 1);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

void GatherBlocks(DType t, const TensorRef& d, const TensorRef& s, const TensorRef& offsets, uint32_t repeat,
                  Strides ds, Site at) {
  Core& c = Enter("Gatherb", at);
  NeedWord(t);
  if (!repeat) return;
  CheckView(c, offsets, uint64_t(repeat) * 32, kBlock, "offsets");
  Begin(c, PIPE_V);
  CheckRead(c, PIPE_V, offsets.addr, uint64_t(repeat) * 32, "offsets");
  for (uint32_t e = 0; e < repeat * 8; ++e) {
    uint32_t byte;
    if (!BytesGood(c, offsets.addr + e * 4, 4)) Violate("uninitialized UB", "offset %u was never written", e);
    std::memcpy(&byte, c.ub + offsets.addr + e * 4, 4);
    TensorRef from = s, to = d;
    from.addr += byte;
    to.addr += ((e / 8) * ds.repeat + (e % 8) * ds.block) * kBlock;
    CheckView(c, from, kBlock, kBlock, "src");
    CheckView(c, to, kBlock, kBlock, "dst");
    CheckOverlap(to.addr, kBlock, from.addr, kBlock, false, "src");
    CheckRead(c, PIPE_V, from.addr, kBlock, "src");
    CheckWrite(c, PIPE_V, to.addr, kBlock, "dst");
    CopyGood(c, to.addr, from.addr, kBlock);
    std::memcpy(c.ub + to.addr, c.ub + from.addr, kBlock);
    MarkRead(c, PIPE_V, from.addr, kBlock);
    MarkWrite(c, PIPE_V, to.addr, kBlock);
  }
  MarkRead(c, PIPE_V, offsets.addr, uint64_t(repeat) * 32);
  TraceVector(c, t, d, uint64_t(repeat) * 256 / Width(t), Width(t), repeat, &ds, 1);
}

// Normal mode (counter == false): every repeat looks at 256 B. Counter mode: at `mask` elements. What is kept
// is appended to dst without gaps.
void GatherByMask(DType t, const TensorRef& d, const TensorRef& s, const TensorRef* pattern_tensor,
                  uint8_t pattern, bool counter, uint32_t mask, const AscendC::GatherMaskParams& p,
                  uint64_t* kept, Site at) {
  Core& c = Enter("GatherMask", at);
  NeedWord(t);
  const uint32_t w = Width(t), lanes = Lanes(w), per_block = kBlock / w;
  if (!pattern_tensor && (pattern < 1 || pattern > 7))
    Violate("field over its limit", "pattern %u; built-in patterns are 1 to 7", pattern);
  const uint32_t n = counter ? mask : lanes;
  *kept = 0;
  if (!p.repeatTimes || !n) return;
  const auto address = [&](uint32_t r, uint32_t i) {
    return s.addr + (uint32_t(p.src0RepeatStride) * r + (i / per_block) * p.src0BlockStride) * kBlock +
           i % per_block * w;
  };
  const auto keep = [&](uint32_t r, uint32_t i) -> bool {
    if (pattern_tensor) {
      const uint32_t byte = pattern_tensor->addr + r * p.src1RepeatStride * kBlock + i / 8;
      return c.ub[byte] >> (i % 8) & 1;
    }
    switch (pattern) {
      case 1:
        return i % 2 == 0;
      case 2:
        return i % 2 == 1;
      case 7:
        return true;
      default:
        return i % 4 == pattern - 3u;
    }
  };
  uint32_t end = 0;
  for (uint32_t r = 0; r < p.repeatTimes; r += std::max<uint32_t>(1, p.repeatTimes - 1))
    end = std::max(end, address(r, n - 1) + w);
  CheckView(c, s, end - s.addr, kBlock, "src0");
  uint64_t total = 0;
  for (uint32_t r = 0; r < p.repeatTimes; ++r)
    for (uint32_t i = 0; i < n; ++i) total += keep(r, i);
  CheckView(c, d, total * w, kBlock, "dst");
  Begin(c, PIPE_V);
  CheckRead(c, PIPE_V, s.addr, end - s.addr, "src0");
  CheckWrite(c, PIPE_V, d.addr, total * w, "dst");
  if (d.addr != s.addr) CheckOverlap(d.addr, total * w, s.addr, end - s.addr, false, "src0");
  if (pattern_tensor) {
    const uint32_t bytes = (p.repeatTimes - 1u) * p.src1RepeatStride * kBlock + (n + 7) / 8;
    CheckView(c, *pattern_tensor, bytes, kBlock, "src1");
    CheckRead(c, PIPE_V, pattern_tensor->addr, bytes, "src1");
    if (!AllGood(c, pattern_tensor->addr, (n + 7) / 8))
      Violate("uninitialized UB", "the pattern was never written");
    MarkRead(c, PIPE_V, pattern_tensor->addr, bytes);
  }
  uint32_t to = d.addr;
  for (uint32_t r = 0; r < p.repeatTimes; ++r) {
    for (uint32_t i = 0; i < n; ++i) {
      if (!keep(r, i)) continue;
      const uint32_t from = address(r, i);
      std::memmove(c.ub + to, c.ub + from, w);
      CopyGood(c, to, from, w);
      to += w;
    }
  }
  *kept = total;
  MarkRead(c, PIPE_V, s.addr, end - s.addr);
  MarkWrite(c, PIPE_V, d.addr, total * w);
  TraceVector(c, t, d, uint64_t(p.repeatTimes) * n, w, p.repeatTimes, nullptr, 0);
}

void Transpose16(DType t, const TensorRef& d, const TensorRef& s, Site at) {
  Core& c = Enter("Transpose", at);
  if (t != kI16 && t != kU16 && t != kF16) UnsupportedType(t);
  const CountOperand dst{&d, 512, "dst"}, src{&s, 512, "src"};
  StartCount(c, dst, &src, 1, true);
  uint16_t in[256], out[256];
  bool good[256];
  std::memcpy(in, c.ub + s.addr, 512);
  for (uint32_t i = 0; i < 256; ++i) good[i] = BytesGood(c, s.addr + i * 2, 2);
  for (uint32_t i = 0; i < 256; ++i) {
    out[i % 16 * 16 + i / 16] = in[i];
    SetGood(c, d.addr + (i % 16 * 16 + i / 16) * 2, 2, good[i]);
  }
  std::memcpy(c.ub + d.addr, out, 512);
  FinishCount(c, dst, &src, 1);
  TraceVector(c, t, d, 256, 2, 1, nullptr, 0);
}

// Sixteen 32 B blocks in, sixteen out. 16-bit: out[j][i] = in[i][j]. 32-bit: in is 16 rows of 8; element j of
// row i goes to block 2*j + i/8, position i%8. 8-bit: 16 bytes of each block, the half chosen by srcHighHalf,
// land in the half chosen by dstHighHalf. The lists hold UB byte addresses.
void To5HD(DType t, const uint64_t* dst, const uint64_t* src, const AscendC::TransDataTo5HDParams& p,
           Site at) {
  Core& c = Enter("TransDataTo5HD", at);
  if (t == kNone || Width(t) > 4) UnsupportedType(t);
  const uint32_t w = Width(t);
  Begin(c, PIPE_V);
  for (uint32_t r = 0; r < p.repeatTimes; ++r) {
    uint8_t in[16][32];
    bool good[16][32];
    uint32_t to[16];
    for (int i = 0; i < 16; ++i) {
      const uint64_t from = src[i] + uint64_t(r) * p.srcRepStride * kBlock;
      const uint64_t dest = dst[i] + uint64_t(r) * p.dstRepStride * kBlock;
      if (from % kBlock || dest % kBlock)
        Violate("misaligned UB address", "list entry %d: src 0x%llx dst 0x%llx", i, (unsigned long long)from,
                (unsigned long long)dest);
      if (from + kBlock > c.ub_top || dest + kBlock > c.ub_top)
        Violate("UB overflow", "list entry %d of repeat %u lies beyond the buffers", i, r);
      to[i] = static_cast<uint32_t>(dest);
      CheckRead(c, PIPE_V, from, kBlock, "src");
      std::memcpy(in[i], c.ub + from, kBlock);
      for (int b = 0; b < 32; ++b) good[i][b] = ByteGood(c, from + b);
      MarkRead(c, PIPE_V, from, kBlock);
    }
    const auto put = [&](uint32_t row, uint32_t pos, int i, uint32_t j) {
      std::memcpy(c.ub + to[row] + pos * w, in[i] + j * w, w);
      bool ok = true;
      for (uint32_t b = 0; b < w; ++b) ok = ok && good[i][j * w + b];
      SetGood(c, to[row] + pos * w, w, ok);
    };
    for (int i = 0; i < 16; ++i) CheckWrite(c, PIPE_V, to[i], kBlock, "dst");
    for (int i = 0; i < 16; ++i) {
      if (w == 2)
        for (uint32_t j = 0; j < 16; ++j) put(j, i, i, j);
      else if (w == 4)
        for (uint32_t j = 0; j < 8; ++j) put(2 * j + i / 8, i % 8, i, j);
      else
        for (uint32_t j = 0; j < 16; ++j)
          put(j, i + (p.dstHighHalf ? 16 : 0), i, j + (p.srcHighHalf ? 16 : 0));
    }
    for (int i = 0; i < 16; ++i) MarkWrite(c, PIPE_V, to[i], kBlock);
  }
  TraceVector(c, t, TensorRef(), uint64_t(p.repeatTimes) * 512 / w, w, p.repeatTimes, nullptr, 0);
}

}  // namespace TWIN_ABI
}  // namespace twin
