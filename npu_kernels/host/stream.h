/* Stores that go around the caches, for tensors that no cache will hold: a cache line that is written whole
 * need not be read from memory first.
 *
 * Lines at the ends of `dst` that are not written whole are stored as usual. What has been stored this way is
 * seen by other threads in order only after af_stream_end.
 */
#ifndef AUTOFUSE_HOST_STREAM_H
#define AUTOFUSE_HOST_STREAM_H
#include <stdint.h>

#if defined(__AVX512F__)
typedef float af_line __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef float af_line __attribute__((vector_size(32)));
#else
typedef float af_line __attribute__((vector_size(16)));
#endif

static inline void af_stream_line(char* dst, const char* src) {
  af_line line;
  __builtin_memcpy(&line, src, sizeof(line));
#if defined(__clang__)
  __builtin_nontemporal_store(line, (af_line*)dst);
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512((float*)dst, line);
#elif defined(__AVX__)
  __builtin_ia32_movntps256((float*)dst, line);
#elif defined(__SSE__)
  __builtin_ia32_movntps((float*)dst, line);
#else
  __builtin_memcpy(dst, &line, sizeof(line));
#endif
}

/* Items of 4 bytes. */
__attribute__((unused, noinline)) static void af_stream_items(void* dst, const void* src, int64_t items) {
  const int64_t ahead = (-(intptr_t)dst & 63) / 4;
  const int64_t head = ahead < items ? ahead : items;
  const int64_t lines = (items - head) / 16;
  const int64_t rest = items - head - 16 * lines;
  char* const to = (char*)dst + 4 * head;
  const char* const from = (const char*)src + 4 * head;
  for (int64_t i = 0; i < head; ++i) __builtin_memcpy((char*)dst + 4 * i, (const char*)src + 4 * i, 4);
  for (int64_t i = 0; i < 64 * lines; i += (int64_t)sizeof(af_line)) af_stream_line(to + i, from + i);
  for (int64_t i = 16 * lines; i < 16 * lines + rest; ++i) __builtin_memcpy(to + 4 * i, from + 4 * i, 4);
}

static inline void af_stream_end(void) {
#if defined(__SSE__)
  __builtin_ia32_sfence();
#endif
}
#endif
