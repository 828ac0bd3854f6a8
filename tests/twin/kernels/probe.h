// Why: runs one helper or API call over arrays of any length as a one-block kernel, so that a Python test can
// compare it with numpy or TensorFlow. A probe loads tiles of its inputs, calls its body, stores the tile of
// the output. ProbeTiling::count elements; numbers and values are the body's own parameters.
#pragma once
#include "kernel_operator.h"
#include "twin/launch.h"

#include <cstring>
#include <tuple>
#include <utility>

using namespace AscendC;

struct ProbeTiling {
  uint32_t count;
  uint32_t tile;  // elements a tile, a multiple of 256
  int64_t number[6];
  double value[4];
};

struct ProbeEntry {
  const char* name;
  void (*run)(void** args);
  ProbeEntry* next;
};
extern ProbeEntry* g_probes;
struct ProbeRegistrar {
  explicit ProbeRegistrar(ProbeEntry* e) {
    e->next = g_probes;
    g_probes = e;
  }
};

// Tiles with PIPE_ALL between stages: probes test values; pipelines have tests of their own.
template <typename D, typename... S>
struct TileLoop {
  TBuf<TPosition::VECCALC> buffers[sizeof...(S) + 2];

  template <typename F, std::size_t... I>
  void Run(void** args, uint32_t tmp_bytes, F body, std::index_sequence<I...>) {
    GET_TILING_DATA_WITH_STRUCT(ProbeTiling, t, args[sizeof...(S) + 2]);
    TPipe pipe;
    const uint32_t tile = t.tile;
    (pipe.InitBuffer(buffers[I], tile * sizeof(S)), ...);
    pipe.InitBuffer(buffers[sizeof...(S)], tile * sizeof(D));
    pipe.InitBuffer(buffers[sizeof...(S) + 1], tmp_bytes ? tmp_bytes : 32);
    GlobalTensor<D> out;
    out.SetGlobalBuffer(reinterpret_cast<D*>(args[sizeof...(S)]), t.count);
    std::tuple<GlobalTensor<S>...> in;
    (std::get<I>(in).SetGlobalBuffer(reinterpret_cast<S*>(args[I]), t.count), ...);
    for (uint32_t at = 0; at < t.count; at += tile) {
      const uint32_t n = t.count - at < tile ? t.count - at : tile;
      (DataCopyPad(buffers[I].template Get<S>(), std::get<I>(in)[at],
                   DataCopyExtParams(1, n * uint32_t(sizeof(S)), 0, 0, 0), DataCopyPadExtParams<S>()),
       ...);
      PipeBarrier<PIPE_ALL>();
      const LocalTensor<D> d = buffers[sizeof...(S)].template Get<D>();
      body(d, buffers[I].template Get<S>()..., buffers[sizeof...(S) + 1].template Get<uint8_t>(), n, t);
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(out[at], d, DataCopyExtParams(1, n * uint32_t(sizeof(D)), 0, 0, 0));
      PipeBarrier<PIPE_ALL>();
    }
  }
};

#define PROBE_CAT2(a, b) a##b
#define PROBE_CAT(a, b) PROBE_CAT2(a, b)
// TMP: scratch bytes as a function of the tile. The body sees dst, its sources by the names it gives, tmp, n,
// t.
#define PROBE_AS(id, probe_name, ...)                                                               \
  static void PROBE_CAT(probe_run_, id)(void** args);                                               \
  static ProbeEntry PROBE_CAT(probe_entry_, id) = {probe_name, PROBE_CAT(probe_run_, id), nullptr}; \
  static ProbeRegistrar PROBE_CAT(probe_registrar_, id)(&PROBE_CAT(probe_entry_, id));              \
  static void PROBE_CAT(probe_run_, id)(void** args) { __VA_ARGS__ }
#define PROBE1(name, D, S, TMP, ...)                                                                   \
  PROBE_AS(__COUNTER__, name,                                                                          \
           TileLoop<D, S>().Run(                                                                       \
               args, TMP,                                                                              \
               [](const LocalTensor<D>& dst, const LocalTensor<S>& a, const LocalTensor<uint8_t>& tmp, \
                  uint32_t n, const ProbeTiling& t) {                                                  \
                 (void)tmp;                                                                            \
                 (void)t;                                                                              \
                 __VA_ARGS__;                                                                          \
               },                                                                                      \
               std::index_sequence<0>());)
#define PROBE2(name, D, S0, S1, TMP, ...)                                                        \
  PROBE_AS(__COUNTER__, name,                                                                    \
           TileLoop<D, S0, S1>().Run(                                                            \
               args, TMP,                                                                        \
               [](const LocalTensor<D>& dst, const LocalTensor<S0>& a, const LocalTensor<S1>& b, \
                  const LocalTensor<uint8_t>& tmp, uint32_t n, const ProbeTiling& t) {           \
                 (void)tmp;                                                                      \
                 (void)t;                                                                        \
                 __VA_ARGS__;                                                                    \
               },                                                                                \
               std::index_sequence<0, 1>());)
#define PROBE3(name, D, S0, S1, S2, TMP, ...)                                                               \
  PROBE_AS(                                                                                                 \
      __COUNTER__, name,                                                                                    \
      TileLoop<D, S0, S1, S2>().Run(                                                                        \
          args, TMP,                                                                                        \
          [](const LocalTensor<D>& dst, const LocalTensor<S0>& a, const LocalTensor<S1>& b,                 \
             const LocalTensor<S2>& c, const LocalTensor<uint8_t>& tmp, uint32_t n, const ProbeTiling& t) { \
            (void)tmp;                                                                                      \
            (void)t;                                                                                        \
            __VA_ARGS__;                                                                                    \
          },                                                                                                \
          std::index_sequence<0, 1, 2>());)
// A whole kernel of its own: args are the GM pointers, the workspace, the tiling.
#define KERNEL(name, ...) PROBE_AS(__COUNTER__, name, __VA_ARGS__)
constexpr uint32_t kTile = 2048;
