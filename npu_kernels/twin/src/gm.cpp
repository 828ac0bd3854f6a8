// Why: which bytes of GM a kernel may touch, and what of GM was written by whom. A GlobalTensor remembers the
// registered range its base lies in, so running past the end is found even where another buffer begins there.
#include <algorithm>
#include <cstdio>

#include "core.h"

namespace twin {
inline namespace TWIN_ABI {

int32_t FindRange(const void* ptr) {
  const Launch& l = *core().launch;
  const uint8_t* p = static_cast<const uint8_t*>(ptr);
  int32_t at_end = -1;
  for (uint32_t i = 0; i < l.range_count; ++i) {
    const Range& r = l.ranges[i];
    if (p >= r.ptr && p < r.ptr + r.bytes) return static_cast<int32_t>(i);
    if (p == r.ptr || p == r.ptr + r.bytes) at_end = static_cast<int32_t>(i);  // empty, or one past the end
  }
  return at_end;
}

#if TWIN_CHECK

void CheckGm(Core& c, const GmRef& g, const uint8_t* from, uint64_t bytes, bool write) {
  if (!bytes) return;
  const char* verb = write ? "write" : "read";
  if (g.range < 0)
    Violate("GM out of bounds", "%s of %llu B at %p: not in any buffer of this launch", verb,
            static_cast<unsigned long long>(bytes), static_cast<const void*>(from));
  const Range& r = c.launch->ranges[g.range];
  const long long offset = from - r.ptr;
  if (from < r.ptr || offset + bytes > r.bytes)
    Violate("GM out of bounds", "%s of bytes [%lld, %lld) of %s %u, which has %llu", verb, offset,
            offset + static_cast<long long>(bytes), r.kind, r.number,
            static_cast<unsigned long long>(r.bytes));
  if (write && !r.writable)
    Violate("write into an input", "bytes [%lld, %lld) of %s %u", offset,
            offset + static_cast<long long>(bytes), r.kind, r.number);
}

namespace {
// Whether two sets of rows share a byte. Rows of one set are in ascending, non-overlapping order (stride >=
// bytes).
bool Meet(const Written& a, const uint8_t* ptr, uint64_t bytes, uint64_t stride, uint32_t rows) {
  const uint8_t* a_end = a.ptr + (a.rows - 1) * a.stride + a.bytes;
  const uint8_t* b_end = ptr + (rows - 1) * stride + bytes;
  if (a_end <= ptr || b_end <= a.ptr) return false;
  if (a.rows == 1 && rows == 1) return true;
  uint32_t i = 0, j = 0;
  while (i < a.rows && j < rows) {
    const uint8_t *x = a.ptr + i * a.stride, *y = ptr + j * stride;
    if (x + a.bytes <= y)
      ++i;
    else if (y + bytes <= x)
      ++j;
    else
      return true;
  }
  return false;
}
}  // namespace

void NoteGmWrite(Core& c, const uint8_t* ptr, uint64_t bytes, uint64_t stride, uint32_t rows, pipe_t p) {
  if (!bytes || !rows) return;
  if (rows > 1 && stride == bytes) {
    bytes *= rows;
    rows = 1;
  }
  if (!c.written.empty()) {  // adjacent stores of consecutive tiles: keep one record
    Written& w = c.written.back();
    if (w.rows == 1 && rows == 1 && w.ptr + w.bytes == ptr && w.atomic == c.atomic && w.epoch == c.epoch) {
      w.bytes += bytes;
      w.seq = c.issued[p];
      return;
    }
  }
  c.written.push_back(Written{ptr, bytes, stride, rows, c.block, c.epoch, c.atomic, c.issued[p]});
}

// A read of what this block stored needs MTE3 to be waited for; only writable ranges can be affected.
void CheckGmOrder(Core& c, const uint8_t* ptr, uint64_t bytes, uint64_t stride, uint32_t rows, pipe_t p) {
  if (!bytes || !rows || c.written.empty()) return;
  const int32_t range = FindRange(ptr);
  if (range < 0 || !c.launch->ranges[range].writable) return;
  for (const Written& w : c.written) {
    if (w.seq <= c.clock[p].seen[PIPE_MTE3] || !Meet(w, ptr, bytes, std::max(stride, bytes), rows)) continue;
    Violate("hazard",
            "read after write in GM: pipe %s reads bytes from offset %lld of %s %u without waiting for the "
            "store (flag MTE3_%s)",
            Name(p), static_cast<long long>(ptr - c.launch->ranges[range].ptr), c.launch->ranges[range].kind,
            c.launch->ranges[range].number, Name(p));
  }
}

void CheckBlockWrites(const char* kernel, std::vector<Written>& all) {
  struct Box {
    const uint8_t *from, *to;
    uint32_t index;
  };
  std::vector<Box> boxes;
  boxes.reserve(all.size());
  for (uint32_t i = 0; i < all.size(); ++i)
    boxes.push_back({all[i].ptr, all[i].ptr + (all[i].rows - 1) * all[i].stride + all[i].bytes, i});
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.from < b.from; });
  // Boxes of strided stores interleave; each pair whose boxes meet is compared row by row. `reach` bounds the
  // scan.
  std::vector<uint32_t> open;
  for (const Box& b : boxes) {
    open.erase(std::remove_if(open.begin(), open.end(), [&](uint32_t k) { return boxes[k].to <= b.from; }),
               open.end());
    const Written& w = all[b.index];
    for (uint32_t k : open) {
      const Written& o = all[boxes[k].index];
      if (o.block == w.block || o.epoch != w.epoch || (o.atomic && w.atomic)) continue;
      if (!Meet(o, w.ptr, w.bytes, std::max(w.stride, w.bytes), w.rows)) continue;
      Violation v;
      std::snprintf(
          v.text, sizeof v.text,
          "kernel %s: GM written by two blocks: blocks %u and %u both write bytes near %p without atomics",
          kernel, o.block, w.block, static_cast<const void*>(std::max(o.ptr, w.ptr)));
      throw v;
    }
    open.push_back(static_cast<uint32_t>(&b - boxes.data()));
  }
}

#else

void CheckGm(Core&, const GmRef&, const uint8_t*, uint64_t, bool) {}
void NoteGmWrite(Core&, const uint8_t*, uint64_t, uint64_t, uint32_t, pipe_t) {}
void CheckGmOrder(Core&, const uint8_t*, uint64_t, uint64_t, uint32_t, pipe_t) {}
void CheckBlockWrites(const char*, std::vector<Written>&) {}

#endif

}  // namespace TWIN_ABI
}  // namespace twin
