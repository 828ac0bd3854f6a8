// Why: one small kernel for each rule of the twin, which breaks that rule and nothing else, and good ones
// beside them that come close. Arguments: one input and one output of 64 floats, then the workspace and the
// tiling.
#include "probe.h"

namespace {
// What most kernels below need: a pipe, three loose buffers of 1 KiB, GM views, a loaded first buffer.
struct Bench {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffers[3];
  GlobalTensor<float> in, out;
  LocalTensor<float> a, b, c;
  explicit Bench(void** args, bool load = true) {
    for (auto& x : buffers) pipe.InitBuffer(x, 1024);
    in.SetGlobalBuffer(reinterpret_cast<float*>(args[0]), 64);
    out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 64);
    a = buffers[0].Get<float>();
    b = buffers[1].Get<float>();
    c = buffers[2].Get<float>();
    if (load) {
      Load(a);
      PipeBarrier<PIPE_ALL>();
    }
  }
  void Load(const LocalTensor<float>& t) { DataCopyPad(t, in, {1, 256, 0, 0, 0}, {false, 0, 0, 0}); }
  void Store(const LocalTensor<float>& t) {
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(out, t, {1, 256, 0, 0, 0});
  }
};
struct Queues {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  Queues() {
    pipe.InitBuffer(in, 1, 256);
    pipe.InitBuffer(out, 1, 256);
  }
};
}  // namespace

// --- UB
// -----------------------------------------------------------------------------------------------------------
KERNEL("ub_too_large", TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 196352 + 32););
KERNEL("ub_all", TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 196352););
KERNEL("ub_scratch", TPipe pipe; TBuf<> x, y; pipe.InitBuffer(x, 4096);
       pipe.InitBuffer(y, 188160 - 4096 + 32); LocalTensor<float> t = x.Get<float>(); Duplicate(t, 1.0f, 128);
       PipeBarrier<PIPE_V>(); LocalTensor<uint8_t> m = x.Get<uint8_t>()[2048];
       Duplicate(m.ReinterpretCast<int16_t>(), int16_t(0), 16); PipeBarrier<PIPE_V>();
       Select(t[128], m, t, t[64], SELMODE::VSEL_TENSOR_TENSOR_MODE, 64););
KERNEL("ub_beyond_buffer", Bench k(args); Add(k.b, k.a, k.a, 257););
KERNEL("ub_misaligned", Bench k(args); Add(k.b, k.a[1], k.a[1], 8););
KERNEL("ub_no_buffer", Bench k(args); LocalTensor<float> none; Add(none, k.a, k.a, 8););
KERNEL("buffers_65", TPipe pipe; TBuf<> b[65]; for (auto& x : b) pipe.InitBuffer(x, 32););
KERNEL("queue_buffers_9", TPipe pipe; TQue<TPosition::VECIN, 1> q[5]; for (auto& x
                                                                           : q) pipe.InitBuffer(x, 2, 32););
KERNEL("two_pipes", TPipe one; TPipe two;);
KERNEL(
    "pipe_after_pipe", for (int i = 0; i < 3; ++i) {
      TPipe pipe;
      TBuf<> b;
      pipe.InitBuffer(b, 190000);
    });
KERNEL("pipe_after_pipe_leak", {
  Queues k;
  k.in.AllocTensor<float>();
} TPipe again;);
KERNEL(
    "pipe_reset", TPipe pipe; for (int i = 0; i < 3; ++i) {
      TBuf<> b;
      pipe.InitBuffer(b, 190000);
      pipe.Reset();
    });

// --- fields and counts
// --------------------------------------------------------------------------------------------
KERNEL("field_block_count", Bench k(args); DataCopyPad(k.b, k.in, {4096, 4, 0, 0, 0}, {false, 0, 0, 0}););
KERNEL("field_block_len", Bench k(args); DataCopyPad(k.b, k.in, {1, 2097152, 0, 0, 0}, {false, 0, 0, 0}););
KERNEL("field_block_len_odd", Bench k(args); DataCopyPad(k.b, k.in, {1, 6, 0, 0, 0}, {false, 0, 0, 0}););
KERNEL("field_padding", Bench k(args); DataCopyPad(k.b, k.in, {1, 4, 0, 0, 0}, {true, 9, 0, 0}););
KERNEL("repeat_256", Bench k(args); WholeReduceSum(k.b, k.a, 64, 256, 1, 1, 0););
KERNEL("mask_lanes", Bench k(args); Add(k.b, k.a, k.a, uint64_t(65), uint8_t(1), BinaryRepeatParams()););
KERNEL("compare_count", Bench k(args); Compare(k.b.ReinterpretCast<uint8_t>(), k.a, k.a, CMPMODE::LT, 63););
KERNEL("compare_int_lt", Bench k(args); LocalTensor<int32_t> i = k.a.ReinterpretCast<int32_t>();
       Compare(k.b.ReinterpretCast<uint8_t>(), i, i, CMPMODE::LT, 64););
KERNEL("dtype_add_u8", Bench k(args); LocalTensor<uint8_t> u = k.a.ReinterpretCast<uint8_t>();
       Add(k.b.ReinterpretCast<uint8_t>(), u, u, 8););
KERNEL("dtype_cast", Bench k(args); Cast(k.b.ReinterpretCast<int8_t>(), k.a, RoundMode::CAST_TRUNC, 8););
KERNEL("cast_mode", Bench k(args); Cast(k.b, k.a.ReinterpretCast<half>(), RoundMode::CAST_TRUNC, 8););
KERNEL("cast_deq", Bench k(args);
       Cast(k.b.ReinterpretCast<half>(), k.a.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, 8););
KERNEL("tanh_tmp", Bench k(args); Tanh(k.b, k.a, k.c.ReinterpretCast<uint8_t>()[896], 64););
KERNEL("gather_offset", Bench k(args); Duplicate(k.b.ReinterpretCast<uint32_t>(), 2000u, 8);
       PipeBarrier<PIPE_V>(); Gather(k.c, k.a, k.b.ReinterpretCast<uint32_t>(), 0, 8););
KERNEL(
    "tiling_size", struct Big { char c[4096]; }; GET_TILING_DATA_WITH_STRUCT(Big, t, args[3]););

// --- queues
// -------------------------------------------------------------------------------------------------------
KERNEL("queue_pop_empty", Queues k; k.in.DeQue<float>(););
KERNEL("queue_push_twice", Queues k; LocalTensor<float> t = k.in.AllocTensor<float>(); k.in.EnQue(t);
       k.in.EnQue(t););
KERNEL("queue_exhausted", Queues k; k.in.AllocTensor<float>(); k.in.AllocTensor<float>(););
KERNEL("queue_not_freed", Queues k; k.in.AllocTensor<float>(););
KERNEL("queue_not_popped", Queues k; k.in.EnQue(k.in.AllocTensor<float>()););
KERNEL("queue_freed_twice", Queues k; LocalTensor<float> t = k.in.AllocTensor<float>(); k.in.FreeTensor(t);
       k.in.FreeTensor(t););
KERNEL("queue_use_after_free", Queues k; LocalTensor<float> t = k.in.AllocTensor<float>(); k.in.FreeTensor(t);
       Duplicate(t, 1.0f, 8););
KERNEL("queue_use_while_queued", Queues k; LocalTensor<float> t = k.in.AllocTensor<float>(); k.in.EnQue(t);
       Duplicate(t, 1.0f, 8););
KERNEL("queue_wrong", Queues k; LocalTensor<float> t = k.in.AllocTensor<float>(); k.out.EnQue(t););
KERNEL("queue_uninit", TPipe pipe; TQue<TPosition::VECIN, 1> q; q.AllocTensor<float>(););
KERNEL("queue_full", TPipe pipe; TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 2, 256);
       q.EnQue(q.AllocTensor<float>()); q.EnQue(q.AllocTensor<float>()););

// --- initialised bytes
// --------------------------------------------------------------------------------------------
KERNEL("uninit_store", Bench k(args); k.Store(k.b););
KERNEL("uninit_through_add", Bench k(args); Add(k.b, k.a, k.c, 64); k.Store(k.b););
KERNEL("uninit_tail", Bench k(args); Duplicate(k.b, 1.0f, 63); k.Store(k.b););
KERNEL("uninit_scalar", Bench k(args); k.b.GetValue(0););
KERNEL("uninit_select", Bench k(args); LocalTensor<uint8_t> m = k.b.ReinterpretCast<uint8_t>();
       Compare(m, k.c, k.a, CMPMODE::LT, 64); PipeBarrier<PIPE_V>(); Duplicate(k.c, 0.0f, 64);
       PipeBarrier<PIPE_V>(); Select(k.c, m, k.a, k.c, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64); k.Store(k.c););
// Only the first 61 elements are compared data; the bits of the rest are garbage that nothing uses.
KERNEL("uninit_beyond_count", Bench k(args); Duplicate(k.c, 0.0f, 61); PipeBarrier<PIPE_V>();
       LocalTensor<uint8_t> m = k.b.ReinterpretCast<uint8_t>(); Compare(m, k.a, k.c, CMPMODE::LT, 64);
       PipeBarrier<PIPE_V>(); Select(k.c, m, k.a, k.c, SELMODE::VSEL_TENSOR_TENSOR_MODE, 61);
       PipeBarrier<PIPE_ALL>(); DataCopyPad(k.out, k.c, {1, 61 * 4, 0, 0, 0}););
KERNEL("uninit_gather_offset", Bench k(args); Gather(k.c, k.a, k.b.ReinterpretCast<uint32_t>(), 0, 8););

// --- GM
// -----------------------------------------------------------------------------------------------------------
KERNEL("gm_read_beyond", Bench k(args); DataCopyPad(k.b, k.in[60], {1, 20, 0, 0, 0}, {false, 0, 0, 0}););
KERNEL("gm_write_beyond", Bench k(args); DataCopyPad(k.out[1], k.a, {1, 256, 0, 0, 0}););
KERNEL("gm_write_before", Bench k(args); DataCopyPad(k.out[uint64_t(-1)], k.a, {1, 4, 0, 0, 0}););
KERNEL("gm_write_input", Bench k(args); DataCopyPad(k.in, k.a, {1, 256, 0, 0, 0}););
KERNEL("gm_elsewhere", Bench k(args); static float other[64]; k.out.SetGlobalBuffer(other, 64);
       k.Store(k.a););
KERNEL("gm_scalar_beyond", Bench k(args); k.in.GetValue(64););
KERNEL("gm_read_own_store", Bench k(args); k.Store(k.a);
       DataCopyPad(k.b, k.out, {1, 256, 0, 0, 0}, {false, 0, 0, 0}););
KERNEL("gm_read_own_store_waited", Bench k(args); k.Store(k.a); PipeBarrier<PIPE_ALL>();
       DataCopyPad(k.b, k.out, {1, 256, 0, 0, 0}, {false, 0, 0, 0}););

// --- hazards
// ------------------------------------------------------------------------------------------------------
KERNEL("hazard_v_raw", Bench k(args); Add(k.b, k.a, k.a, 64); Add(k.c, k.b, k.a, 64); k.Store(k.c););
KERNEL("hazard_v_waw", Bench k(args); Add(k.b, k.a, k.a, 64); Mul(k.b, k.a, k.a, 64); k.Store(k.b););
KERNEL("hazard_v_war", Bench k(args); Add(k.b, k.a, k.a, 64); Duplicate(k.a, 0.0f, 64); k.Store(k.b););
KERNEL("hazard_v_independent", Bench k(args); Add(k.b, k.a, k.a, 64); Mul(k.c, k.a, k.a, 64); k.Store(k.b););
KERNEL("hazard_load_use", Bench k(args, false); k.Load(k.a); Add(k.b, k.a, k.a, 64); k.Store(k.b););
KERNEL("hazard_load_flag", Bench k(args, false); k.Load(k.a); SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
       WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); Add(k.b, k.a, k.a, 64); k.Store(k.b););
KERNEL("hazard_flag_too_early", Bench k(args, false); SetFlag<HardEvent::MTE2_V>(EVENT_ID0); k.Load(k.a);
       WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); Add(k.b, k.a, k.a, 64); k.Store(k.b););
KERNEL("hazard_compute_store", Bench k(args); Add(k.b, k.a, k.a, 64);
       DataCopyPad(k.out, k.b, {1, 256, 0, 0, 0}););
KERNEL("hazard_reload", Bench k(args); Add(k.b, k.a, k.a, 64); k.Load(k.a); k.Store(k.b););
KERNEL("hazard_store_overwrite", Bench k(args); DataCopyPad(k.out, k.a, {1, 256, 0, 0, 0});
       Duplicate(k.a, 0.0f, 64););
KERNEL("hazard_mte2_twice", Bench k(args, false); k.Load(k.a); k.Load(k.a); PipeBarrier<PIPE_ALL>();
       k.Store(k.a););
KERNEL("hazard_scalar_read", Bench k(args); Add(k.b, k.a, k.a, 64); k.b.GetValue(0););
KERNEL("hazard_scalar_write", Bench k(args); k.a.SetValue(0, 1.0f); Add(k.b, k.a, k.a, 64); k.Store(k.b););
// The scalar unit waited for V, so what it issues next is behind V too.
KERNEL("hazard_through_scalar", Bench k(args); Add(k.b, k.a, k.a, 64); SetFlag<HardEvent::V_S>(EVENT_ID0);
       WaitFlag<HardEvent::V_S>(EVENT_ID0); DataCopyPad(k.out, k.b, {1, 256, 0, 0, 0}););
// Two buffers take turns although the first is free again: the second load need not wait for the first's
// reader.
KERNEL("queue_turns", TPipe pipe; TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 2, 256); uint64_t at[3];
       for (uint64_t& a : at) {
         LocalTensor<float> t = q.AllocTensor<float>();
         a = t.GetPhyAddr();
         q.FreeTensor(t);
       } GlobalTensor<float> out;
       out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 64); out.SetValue(0, float(at[0] != at[1]));
       out.SetValue(1, float(at[0] == at[2])););
KERNEL(
    "hazard_queues_good", Queues k; GlobalTensor<float> in, out;
    in.SetGlobalBuffer(reinterpret_cast<float*>(args[0]), 64);
    out.SetGlobalBuffer(reinterpret_cast<float*>(args[1]), 64); for (int i = 0; i < 3; ++i) {
      LocalTensor<float> t = k.in.AllocTensor<float>();
      DataCopyPad(t, in, {1, 256, 0, 0, 0}, {false, 0, 0, 0});
      k.in.EnQue(t);
      LocalTensor<float> u = k.in.DeQue<float>();
      LocalTensor<float> v = k.out.AllocTensor<float>();
      Muls(v, u, 2.0f, 64);
      k.in.FreeTensor(u);
      k.out.EnQue(v);
      LocalTensor<float> w = k.out.DeQue<float>();
      DataCopyPad(out, w, {1, 256, 0, 0, 0});
      k.out.FreeTensor(w);
    });

// --- overlap
// ------------------------------------------------------------------------------------------------------
KERNEL("overlap_partial", Bench k(args); Add(k.a[8], k.a, k.b, 16););
KERNEL("overlap_same", Bench k(args); Add(k.a, k.a, k.a, 64); k.Store(k.a););
KERNEL("overlap_widening", Bench k(args); Cast(k.a, k.a.ReinterpretCast<half>(), RoundMode::CAST_NONE, 64););
KERNEL("overlap_advanced", Bench k(args); Tanh(k.a, k.a, k.b.ReinterpretCast<uint8_t>(), 64););
KERNEL("overlap_brcb", Bench k(args); Brcb(k.a, k.a, 1, BrcbRepeatParams(1, 8)););
KERNEL("overlap_repeats", Bench k(args); Duplicate(k.a, 1.0f, 256); PipeBarrier<PIPE_V>();
       Adds(k.a[64], k.a, 1.0f, uint64_t(32), uint8_t(3), UnaryRepeatParams(1, 1, 8, 8)););
KERNEL("overlap_dense_repeats", Bench k(args); Duplicate(k.a, 1.0f, 256); PipeBarrier<PIPE_V>();
       Adds(k.a[64], k.a, 1.0f, uint64_t(64), uint8_t(3), UnaryRepeatParams(1, 1, 8, 8)););
KERNEL("accumulate_repeats", Bench k(args); Duplicate(k.b, 1.0f, 256); Duplicate(k.c, 0.0f, 64);
       PipeBarrier<PIPE_V>();
       Add(k.c, k.b, k.c, uint64_t(64), uint8_t(4), BinaryRepeatParams(1, 1, 1, 0, 8, 0)); k.Store(k.c););

// --- events and modes
// ---------------------------------------------------------------------------------------------
KERNEL("event_set_twice", Bench k(args); SetFlag<HardEvent::V_MTE3>(EVENT_ID1);
       SetFlag<HardEvent::V_MTE3>(EVENT_ID1););
KERNEL("event_wait_unset", Bench k(args); WaitFlag<HardEvent::V_MTE3>(EVENT_ID1););
KERNEL("event_other_id", Bench k(args); SetFlag<HardEvent::V_MTE3>(EVENT_ID1);
       WaitFlag<HardEvent::V_MTE3>(EVENT_ID2););
KERNEL("event_id_8", Bench k(args); SetFlag<HardEvent::V_MTE3>(8););
KERNEL("event_not_waited", Bench k(args); SetFlag<HardEvent::V_MTE3>(EVENT_ID1););
KERNEL("event_of_queue", Queues k; k.in.EnQue(k.in.AllocTensor<float>());
       SetFlag<HardEvent::MTE2_V>(EVENT_ID0););
KERNEL("event_alloc_all", Bench k(args); for (int i = 0; i < 9; ++i) k.pipe.AllocEventID<HardEvent::V_S>(););
KERNEL("event_release", Bench k(args); k.pipe.ReleaseEventID<HardEvent::V_S>(3););
KERNEL("event_sync", Bench k(args); TQueSync<PIPE_V, PIPE_MTE3> s; Add(k.b, k.a, k.a, 64);
       TEventID id = k.pipe.AllocEventID<HardEvent::V_MTE3>(); s.SetFlag(id); s.WaitFlag(id);
       k.pipe.ReleaseEventID<HardEvent::V_MTE3>(id); DataCopyPad(k.out, k.b, {1, 256, 0, 0, 0}););
KERNEL("mode_counter", Bench k(args); SetMaskCount(););
KERNEL("mode_mask", Bench k(args); SetVectorMask<float>(0, 0xff););
KERNEL("mode_atomic", Bench k(args); SetAtomicAdd<float>(););

// --- blocks
// -------------------------------------------------------------------------------------------------------
KERNEL("blocks_same", Bench k(args); k.Store(k.a););
KERNEL("blocks_overlap", Bench k(args); PipeBarrier<PIPE_ALL>();
       DataCopyPad(k.out[GetBlockIdx() * 15], k.a, {1, 64, 0, 0, 0}););
KERNEL("blocks_apart", Bench k(args); PipeBarrier<PIPE_ALL>();
       DataCopyPad(k.out[GetBlockIdx() * 16], k.a, {1, 64, 0, 0, 0}););
KERNEL("blocks_interleaved", Bench k(args); PipeBarrier<PIPE_ALL>();
       DataCopyPad(k.out[GetBlockIdx() * 2], k.a, {8, 8, 0, 24, 0}););
KERNEL("blocks_interleaved_bad", Bench k(args); PipeBarrier<PIPE_ALL>();
       DataCopyPad(k.out[GetBlockIdx()], k.a, {8, 8, 0, 24, 0}););
KERNEL("blocks_atomic", Bench k(args); SetAtomicAdd<float>(); k.Store(k.a); PipeBarrier<PIPE_ALL>();
       SetAtomicNone(););
// Every block stores its number, all meet, every block reads all numbers back from the workspace.
KERNEL("blocks_meet", TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 1024);
       LocalTensor<int32_t> t = b.Get<int32_t>(); const int32_t n = GetBlockNum();
       GlobalTensor<int32_t> w, out; w.SetGlobalBuffer(reinterpret_cast<int32_t*>(args[2]));
       out.SetGlobalBuffer(reinterpret_cast<int32_t*>(args[1])); Duplicate(t, int32_t(GetBlockIdx() + 1), 8);
       PipeBarrier<PIPE_ALL>(); DataCopyPad(w[GetBlockIdx()], t, {1, 4, 0, 0, 0}); SyncAll();
       DataCopyPad(t, w, {1, uint32_t(4 * n), 0, 0, 0}, {false, 0, 0, 0}); PipeBarrier<PIPE_ALL>();
       DataCopyPad(out[GetBlockIdx() * n], t, {1, uint32_t(4 * n), 0, 0, 0}););
KERNEL("blocks_one_missing", if (GetBlockIdx() == 1) return; SyncAll(););
KERNEL("blocks_one_fails", Bench k(args); if (GetBlockIdx() == 1) k.b.GetValue(0); SyncAll(););
KERNEL(
    "tiling_key", Bench k(args); if (TILING_KEY_IS(1)) { k.Store(k.a); } else { k.b.GetValue(0); });
KERNEL("nothing", (void)args;);
