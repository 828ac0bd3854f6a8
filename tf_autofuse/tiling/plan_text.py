"""Around the generated tiling function: the table of plans (tiling cache, PGO) and the log of its time.

Why in the kernel library: whoever asks it for a plan (the native op, Python, an NPU's launch) gets the same
one, a kept or a measured plan included, without knowing of it. On entry `MakePlan`, which solves; on exit
autofuse_tiling, and where plans are measured autofuse_tiling_pinned and autofuse_plan_keep (codegen/abi.py).

The table. At most MOST_PLANS plans, by sizes and machine; a newer one wins, so a measured plan replaces a
solved one. Records are written once and published by a counter, so a look-up takes no lock. On disk they are
the file <library>.plans, which belongs to the library as it lies in the kernel cache: read at the first call,
appended to under an exclusive lock (flock), each record with the signature of the tiling function and a
checksum. From the first record that is not right on, the file is cut off, with one warning. A folder that
can't be written keeps nothing, which only costs time.
"""
import hashlib
import re
import struct
from typing import List, Tuple

from tf_autofuse.tiling.settings import TilingSettings

#: Plans of one kernel.
MOST_PLANS = 256
#: Behind the library's path.
PLANS_SUFFIX = ".plans"

#: codegen/abi.py's AutofusePin.
PIN_STRUCT = """\
struct AutofusePin {
  int32_t nest;
  int32_t key;
  int64_t tile;
  int64_t cores;
};"""

_TABLE = """\
struct PlanRecord {
  uint64_t signature;
  uint64_t ub_size;
  uint32_t core_num;
  uint32_t block_dim;
  uint64_t workspace_bytes;
  int64_t sizes[%(sizes)d];
  AutofuseTilingData tiling;
  uint64_t check;
};

constexpr uint64_t kSignature = UINT64_C(0x%(signature)s);
constexpr uint32_t kMostPlans = %(most)d;
PlanRecord plan_table[kMostPlans];
std::atomic<uint32_t> plan_count{0};
std::atomic<bool> plans_loaded{false};
std::atomic_flag plans_lock = ATOMIC_FLAG_INIT;
bool plans_appendable = true;  // under the lock

struct PlansLock {
  PlansLock() {
    while (plans_lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~PlansLock() { plans_lock.clear(std::memory_order_release); }
};

// FNV-1a over all but the last 8 bytes.
uint64_t CheckOf(const PlanRecord& r) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&r);
  uint64_t hash = UINT64_C(1469598103934665603);
  for (uint64_t i = 0; i < sizeof(PlanRecord) - sizeof(r.check); ++i) {
    hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  }
  return hash;
}

// The file of plans, open and locked; -1: there is none.
int OpenPlans(int flags, char* path, uint64_t capacity) {
  Dl_info info{};
  if (dladdr == nullptr || dladdr(reinterpret_cast<void*>(&OpenPlans), &info) == 0 ||
      info.dli_fname == nullptr) {
    return -1;
  }
  const int length = snprintf(path, capacity, "%%s%(suffix)s", info.dli_fname);
  if (length < 0 || static_cast<uint64_t>(length) >= capacity) {
    return -1;
  }
  const int file = open(path, flags | O_CLOEXEC, 0644);
  if (file >= 0 && flock(file, LOCK_EX) != 0) {
    close(file);
    return -1;
  }
  return file;
}

void LoadPlans() {
  if (plans_loaded.load(std::memory_order_acquire)) {
    return;
  }
  PlansLock lock;
  if (plans_loaded.load(std::memory_order_relaxed)) {
    return;
  }
  char path[4096];
  const int file = OpenPlans(O_RDWR, path, sizeof(path));
  if (file >= 0) {
    uint32_t count = 0;
    ssize_t got = 0;
    while (count < kMostPlans) {
      PlanRecord& r = plan_table[count];
      got = read(file, &r, sizeof(r));
      if (got != static_cast<ssize_t>(sizeof(r)) || r.signature != kSignature || r.check != CheckOf(r)) {
        break;
      }
      ++count;
    }
    if (count < kMostPlans && got != 0) {
      fprintf(stderr,
              "tf_autofuse: the kept plans in %%s are damaged from number %%u on and ignored from there. "
              "They are made again.\\n",
              path, count);
      if (ftruncate(file, static_cast<off_t>(count) * static_cast<off_t>(sizeof(PlanRecord))) != 0) {
        plans_appendable = false;  // what is appended behind the damage would not be read
      }
    }
    plan_count.store(count, std::memory_order_release);
    close(file);
  }
  plans_loaded.store(true, std::memory_order_release);
}

bool FindPlan(const int64_t* sizes, const AutofuseMachine* machine, AutofuseTilingData* t,
              uint32_t* block_dim, uint64_t* workspace_bytes) {
  LoadPlans();
  for (uint32_t i = plan_count.load(std::memory_order_acquire); i > 0; --i) {
    const PlanRecord& r = plan_table[i - 1];
    if (r.core_num == machine->core_num && r.ub_size == machine->ub_size &&
        memcmp(r.sizes, sizes, %(given)d * sizeof(int64_t)) == 0) {
      *t = r.tiling;
      *block_dim = r.block_dim;
      *workspace_bytes = r.workspace_bytes;
      return true;
    }
  }
  return false;
}

void KeepPlan(const int64_t* sizes, const AutofuseMachine* machine, const AutofuseTilingData& t,
              uint32_t block_dim, uint64_t workspace_bytes, bool on_disk) {
  LoadPlans();
  PlansLock lock;
  const uint32_t count = plan_count.load(std::memory_order_relaxed);
  if (count >= kMostPlans) {
    return;
  }
  PlanRecord& r = plan_table[count];
  memset(&r, 0, sizeof(r));
  r.signature = kSignature;
  r.ub_size = machine->ub_size;
  r.core_num = machine->core_num;
  r.block_dim = block_dim;
  r.workspace_bytes = workspace_bytes;
  memcpy(r.sizes, sizes, %(given)d * sizeof(int64_t));
  r.tiling = t;
  r.check = CheckOf(r);
  plan_count.store(count + 1, std::memory_order_release);
  char path[4096];
  const int flags = O_RDWR | O_CREAT | O_APPEND;
  const int file = on_disk && plans_appendable ? OpenPlans(flags, path, sizeof(path)) : -1;
  if (file >= 0) {
    const off_t end = lseek(file, 0, SEEK_END);
    const off_t bytes = static_cast<off_t>(sizeof(PlanRecord));
    const bool whole = end %% bytes == 0 || ftruncate(file, end - end %% bytes) == 0;
    if (whole && end < bytes * static_cast<off_t>(kMostPlans) && write(file, &r, sizeof(r)) < 0) {
      // A full disk: the plan is made again next time.
    }
    close(file);
  }
}
"""

_MEASURES = """\
AUTOFUSE_EXPORT int32_t autofuse_tiling_pinned(
    const int64_t* sizes, const AutofuseMachine* machine, const AutofusePin* pins, int32_t pin_count,
    void* tiling, uint32_t* block_dim, uint64_t* workspace_bytes) {
  return MakePlan(sizes, machine, static_cast<AutofuseTilingData*>(tiling), block_dim, workspace_bytes, pins,
                  pin_count);
}

AUTOFUSE_EXPORT void autofuse_plan_keep(
    const int64_t* sizes, const AutofuseMachine* machine, const void* tiling, uint32_t block_dim,
    uint64_t workspace_bytes, int32_t on_disk) {
  KeepPlan(sizes, machine, *static_cast<const AutofuseTilingData*>(tiling), block_dim, workspace_bytes,
           on_disk != 0);
}
"""

#: What a pin makes of a variant: the solver's own plan of that tile and number of cores.
PINNED = """\
template <class Case>
Choice Pinned(const Case& c, const AutofusePin& pin, int64_t cores, int64_t ub_bytes) {
  const int64_t budget = ub_bytes - Case::kReserved;
  if (pin.tile < 1 || pin.tile > c.Cut() || pin.cores < 1 || pin.cores > cores || !c.InnerWithin(budget) ||
      !Fits(c, pin.tile, budget)) {
    return Choice{0.0, 0.0, -1, 0, 0, 0, 0, 0};
  }
  return Spread(c, pin.tile, pin.cores, 1, budget);
}
"""


def kept_sizes(path: str, size_count: int, tiling_bytes: int,
               limits: Tuple[int, int]) -> List[Tuple[int, ...]]:
    """The shapes that a file of plans has for a machine's (cores, bytes of UB), each once, the newest first:
    what a kernel was asked for. What is no whole record is left out; nothing is checked, since plans are not
    read here. Raises OSError where there is no file."""
    record = struct.Struct("<QQIIQ%dq%dsQ" % (max(1, size_count), tiling_bytes))
    with open(path, "rb") as stream:
        data = stream.read()
    found = []
    for at in range(0, len(data) - record.size + 1, record.size):
        _, ub_bytes, cores, _, _, *rest = record.unpack_from(data, at)
        if (cores, ub_bytes) == tuple(limits):
            found.append(tuple(rest[:size_count]))
    return list(dict.fromkeys(reversed(found)))


def is_wrapped(settings: TilingSettings) -> bool:
    """Whether anything stands around the solver."""
    return settings.remembers or settings.profiles


def include_lines(settings: TilingSettings) -> List[str]:
    """Lines before everything else, outside of namespaces."""
    lines: List[str] = []
    if settings.remembers:
        lines += ["#include <dlfcn.h>", "#include <fcntl.h>", "#include <sys/file.h>", "#include <unistd.h>",
                  "", "#include <atomic>", "#include <cstdio>", "#include <cstring>"]
    if settings.profiles:
        lines += [line for line in ("#include <chrono>", "#include <cstdio>") if line not in lines]
    if settings.measures:
        lines += ["", PIN_STRUCT]
    if settings.remembers:
        lines += ["", 'extern "C" __attribute__((weak)) int dladdr(const void*, Dl_info*);']
    return lines + [""] if lines else []


def plan_signature(settings: TilingSettings) -> List[str]:
    """The head of the function that solves."""
    pins = [",", "    const AutofusePin* pins, int32_t pin_count) {"] if settings.measures else [") {"]
    lines = ["int32_t MakePlan(", "    const int64_t* sizes, const AutofuseMachine* machine,"
             " AutofuseTilingData* t, uint32_t* block_dim,", "    uint64_t* workspace_bytes"]
    return lines[:2] + [lines[2] + pins[0]] + pins[1:]


#: The head of autofuse_tiling.
SIGNATURE = ("AUTOFUSE_EXPORT int32_t autofuse_tiling(",
             "    const int64_t* sizes, const AutofuseMachine* machine, void* tiling, uint32_t* block_dim,",
             "    uint64_t* workspace_bytes) {",
             "  auto* t = static_cast<AutofuseTilingData*>(tiling);")


def plan_functions(settings: TilingSettings, kernel: str, size_count: int, solver: str) -> str:
    """autofuse_tiling around MakePlan. solver: the text that plans, whose signature the records carry."""
    parts = []
    if settings.remembers:
        signature = hashlib.sha256(("%r %d %s" % (settings, size_count, solver)).encode()).hexdigest()[:16]
        parts += ["namespace {", "", _TABLE % {
            "sizes": max(1, size_count), "given": size_count, "signature": signature, "most": MOST_PLANS,
            "suffix": PLANS_SUFFIX}, "}  // namespace", ""]
    lines = list(SIGNATURE)
    if settings.profiles:
        lines.append("  const auto start = std::chrono::steady_clock::now();")
    pins = ", nullptr, 0" if settings.measures else ""
    make = "MakePlan(sizes, machine, t, block_dim, workspace_bytes%s)" % pins
    if settings.remembers:
        lines += ["  const bool kept = FindPlan(sizes, machine, t, block_dim, workspace_bytes);",
                  "  const int32_t code = kept ? 0 : %s;" % make]
    else:
        lines += ["  const bool kept = false;", "  const int32_t code = %s;" % make]
    if settings.profiles:
        lines += ["  const double us =",
                  "      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)"
                  ".count();",
                  '  fprintf(stderr, "tf_autofuse: tiling of %s: %%.2f us (%%s), %%u blocks, key %%u\\n", us,'
                  % re.sub(r"\W", "_", kernel),
                  '          code != 0 ? "no plan" : kept ? "kept" : "solved", *block_dim, t->tiling_key);']
    if settings.remembers:
        lines += ["  if (!kept && code == 0 && *block_dim != 0) {",
                  "    KeepPlan(sizes, machine, *t, *block_dim, *workspace_bytes, true);", "  }"]
    parts += ["\n".join(lines + ["  return code;", "}", ""])]
    return "\n".join(parts + ([_MEASURES] if settings.measures else []))
