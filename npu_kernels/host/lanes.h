/* The last pass of a loop over lanes, of which fewer elements are left than there are lanes. */
#ifndef AUTOFUSE_HOST_LANES_H
#define AUTOFUSE_HOST_LANES_H
#include <stdint.h>

/* The elements that are left, of which the optimizer does not know that they are a constant. Under a mask
 * that it knows, gcc 12 makes of a masked load, with AVX-512VL, a blend of whole vectors, which reads behind
 * the row's end, be there memory or not. What a mask of variables leaves out is not read. */
static inline int32_t af_lanes_left(int64_t left) {
  int32_t rest = (int32_t)left;
  __asm__("" : "+r"(rest));
  return rest;
}

/* The lanes that the pass takes: all where there are masked loads and stores. */
static inline int32_t af_lanes_taken(int32_t lanes, int32_t rest) {
#ifdef __AVX2__
  (void)rest;
  return lanes;
#else
  (void)lanes;
  return rest;
#endif
}
#endif
