// autofuse_pointwise_0_Abs_Add_Relu
// The device source on the host twin of the Ascend C API. Not part of the device build.
#include "kernel.cpp"

#include "twin/launch.h"

namespace {

constexpr uint32_t kInputs = 2;
constexpr uint32_t kTensors = 3;

void Entry(void** args) {
  autofuse_pointwise_0_abs_add_relu(
      static_cast<GM_ADDR>(args[0]),
      static_cast<GM_ADDR>(args[1]),
      static_cast<GM_ADDR>(args[2]),
      static_cast<GM_ADDR>(args[3]),
      static_cast<GM_ADDR>(args[4]));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t autofuse_run_blocks(
    void* const* gm, const uint64_t* gm_bytes, void* workspace, const void* tiling, uint32_t block_dim,
    uint32_t first_block, uint32_t last_block, char* error, uint64_t error_capacity) {
  uint8_t writable[kTensors];
  for (uint32_t i = 0; i < kTensors; ++i) {
    writable[i] = i >= kInputs;
    // An input whose memory is also an output's (a `forward` pair) is written to.
    for (uint32_t o = kInputs; o < kTensors && i < kInputs; ++o) {
      writable[i] |= gm[i] == gm[o];
    }
  }
  const auto* plan = static_cast<const AutofuseTilingData*>(tiling);
  return twin::RunBlocks(
      "autofuse_pointwise_0_Abs_Add_Relu",
      Entry, gm, gm_bytes, writable, kTensors, workspace, 0, tiling,
      sizeof(AutofuseTilingData), block_dim, first_block, last_block, error,
      error_capacity, false, plan->tiling_key);
}

extern "C" __attribute__((visibility("default"))) void autofuse_trace_begin(uint64_t limit) {
  twin_trace_begin(limit);
}

extern "C" __attribute__((visibility("default"))) uint64_t autofuse_trace_end(
    const TwinTraceRecord** records) {
  return twin_trace_end(records);
}
