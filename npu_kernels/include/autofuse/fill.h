// Why: a scalar in every element, for any width (Duplicate has 16- and 32-bit types only).
// FillScalar<T>(dst, value, count): no scratch. 8-bit: writes up to round_up(count, 2) bytes. Exact on every
// bit pattern.
#pragma once
#include "common.h"

namespace autofuse {

template <typename T>
__aicore__ inline void FillScalar(const LocalTensor<T>& dst, T value, uint32_t count) {
  if constexpr (sizeof(T) == 1) {
    const uint16_t byte = static_cast<uint8_t>(value);
    AscendC::Duplicate(dst.template ReinterpretCast<uint16_t>(), static_cast<uint16_t>(byte | byte << 8),
                       static_cast<int32_t>((count + 1) / 2));
  } else if constexpr (sizeof(T) == 8) {
    const uint64_t v = static_cast<uint64_t>(value);
    const LocalTensor<uint32_t> words = dst.template ReinterpretCast<uint32_t>();
    const uint32_t total = 2 * count;
    // Even words and odd words are two masked fills of the same repeats; they share blocks, hence the
    // barrier.
    for (uint32_t odd = 0; odd < 2; ++odd) {
      const uint32_t word = static_cast<uint32_t>(odd ? v >> 32 : v);
      const uint64_t every = odd ? 0xAAAAAAAAAAAAAAAAull : 0x5555555555555555ull;
      if (odd) Sync();
      const uint32_t repeats = total / 64, tail = total % 64;
      for (uint32_t r = 0; r < repeats; r += 255) {
        uint64_t mask[2] = {every, 0};
        AscendC::Duplicate(words[r * 64], word, mask, static_cast<uint8_t>(Least(repeats - r, 255)), 1, 8);
      }
      if (tail) {
        uint64_t mask[2] = {every & ((1ull << tail) - 1), 0};
        AscendC::Duplicate(words[repeats * 64], word, mask, 1, 1, 8);
      }
    }
  } else {
    AscendC::Duplicate(dst, value, static_cast<int32_t>(count));
  }
}

}  // namespace autofuse
