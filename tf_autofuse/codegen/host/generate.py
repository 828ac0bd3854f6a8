"""From a fused graph and its host program to one C source: the host target's codegen stage as one call.

The same input gives the same bytes. The source needs <stdint.h>, the headers of npu_kernels/host/ whose
functions it calls, and nothing of a C library; it exports the interface of codegen/abi.py and has no state.
"""
import re
from typing import Any, List

from tf_autofuse.codegen.abi import ABI_VERSION, MAX_PHASES, MACHINE_STRUCT
from tf_autofuse.codegen.ascendc.body import CodegenRefusal, comment
from tf_autofuse.codegen.ascendc.generate import shape_values
from tf_autofuse.codegen.ascendc.names import entry_symbol
from tf_autofuse.codegen.host.nest import nest_function
from tf_autofuse.codegen.host.tiling import (fields, memory_field, tiling_functions, tiling_struct,
                                             used_symbols)
from tf_autofuse.codegen.sources import HOST_KERNEL, HOST_TOOLS, KernelSources
from tf_autofuse.ir import proto
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.text import dump
from tf_autofuse.ops.host_forms import headers
from tf_autofuse.schedule.host_graph import Tensor
from tf_autofuse.schedule.host_program import HostProgram, describe, in_place_pairs
from tf_autofuse.symbolic.size import CPP_PRELUDE, to_text

#: Names of locals, functions and types of the generated source, and C's keywords.
_TAKEN = re.compile(
    r"(?:[a-rt-z]\d*|s|q0|qn|first|last|item|items|piece|pieces|group|rest|end|line|bad|one|gm|workspace|"
    r"block|half|blocks|bytes|total|none|sizes|machine|tiling|in_dims|out_dims|memory|code|nest\d+|"
    r"r\d+\w+|step|stream|better\w*|Tiling|Division|Divide|Fold\w+|Min|Max|auto|break|case|char|"
    r"const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    r"restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|"
    r"asm|typeof|af_\w+)\Z"
)

_ELEMENTS = """\
/* Element counts saturate: an empty dim does not hide that the others' product is out of range. */
#define kMostElements ((int64_t)1 << 62)
static inline int64_t ElementsTimes(int64_t count, int64_t dim) {
  const int64_t factor = dim < 1 ? 1 : dim;
  return count > kMostElements / factor ? kMostElements + 1 : count * factor;
}
"""


def generate(fused: FusedGraph, program: HostProgram, machine: Any, config) -> KernelSources:
    """The source of the kernel that runs `fused`. Raises CodegenRefusal where a node has no host form."""
    if len(program.nests) > MAX_PHASES:
        raise CodegenRefusal("%d loop nests are too many for one kernel" % len(program.nests))
    symbols = used_symbols(fused, program)
    for v in fused.sizes:
        if _TAKEN.match(v.name):
            raise CodegenRefusal("the size symbol %s has a name that generated C uses itself" % v.name)
    all_fields = fields(fused, program)

    def base(tensor: Tensor) -> str:
        if tensor.kind == "input":
            return "gm[%d]" % tensor.index
        if tensor.kind == "output":
            return "gm[%d]" % (len(fused.inputs) + tensor.index)
        return "workspace + t->%s" % memory_field(program, tensor)

    printed = [nest_function(p, base, symbols) for p in program.nests]
    functions = {name: text for nest in printed for name, text in sorted(nest.functions.items())}
    nests = list(functions.values()) + [nest.text for nest in printed]
    shape = _shape_function(fused)
    included = headers("\n".join(nests))
    parts = ["%s (%s)" % (comment(fused.name), fused.kind)]
    parts += [comment("%s %d: %s [%s]" % (kind, i, t.dtype.name, ", ".join(map(to_text, t.dims))))
              for kind, tensors in (("input", fused.inputs), ("output", fused.outputs))
              for i, t in enumerate(tensors)]
    parts += ["#include <stdint.h>", ""]
    parts += ['#include "%s"' % h for h in included] + [""]
    parts += ['#define EXPORT __attribute__((visibility("default")))',
              "#define COLD __attribute__((cold))  // runs once for each new shape",
              "#define SETUP EXPORT COLD", "",
              "typedef " + MACHINE_STRUCT.strip().rstrip(";") + " AutofuseMachine;", "", CPP_PRELUDE]
    parts += [tiling_struct(all_fields), ""] + nests
    parts += ["SETUP int64_t autofuse_abi_version(void) { return %d; }" % ABI_VERSION, "", shape, "",
              tiling_functions(fused, program, all_fields), _run_blocks(program)]
    stages = ()
    if config is not None and config.codegen_compile_debug:
        stages = (("hint.txt", dump(fused).encode("utf-8")), ("nests.txt", describe(program).encode("utf-8")),
                  ("fused.pb", proto.to_bytes(fused)))
    return KernelSources(fused.name, entry_symbol(fused.name), ((HOST_KERNEL, "\n".join(parts)),),
                         fused.origin,
                         stages, tools=HOST_TOOLS, in_place=in_place_pairs(fused, program))


def _shape_function(fused: FusedGraph) -> str:
    values = shape_values(fused)
    lines: List[str] = []
    if values["uses_broadcasts"]:
        lines.append("static inline int Broadcasts(int64_t a, int64_t b) "
                     "{ return a == b || a == 1 || b == 1; }")
    if values["uses_elements"]:
        lines.append(_ELEMENTS)
    lines.append("SETUP int32_t autofuse_shape(const int64_t* in_dims, int64_t* out_dims, int64_t* sizes) {")
    lines += ["  const int64_t %s = %s;  %s" % (d.symbol, d.value, d.comment) for d in values["definitions"]]
    lines += ["  if (!(%s)) return %d;  %s" % (c.condition, c.number, c.comment) for c in values["checks"]]
    lines += ["  out_dims[%d] = %s;" % item for item in enumerate(values["out_dims"])]
    lines += ["  sizes[%d] = %s;" % item for item in enumerate(values["sizes"])]
    lines += ["  (void)in_dims;", "  (void)out_dims;", "  (void)sizes;", "  return 0;", "}", "",
              "SETUP const char* autofuse_check_text(int32_t number) {", "  switch (number) {"]
    for c in values["checks"]:
        lines += ["    case %d:" % c.number, "      return \"%s\";" % c.quoted]
    return "\n".join(lines + ["    default:", "      return \"\";", "  }", "}"])


def _run_blocks(program: HostProgram) -> str:
    lines = ["EXPORT int32_t autofuse_run_blocks(void* const* gm, const uint64_t* gm_bytes, void* workspace,",
             "    const void* tiling, uint32_t block_dim, uint32_t first_block, uint32_t last_block,",
             "    char* error, uint64_t error_capacity) {",
             "  const Tiling* const t = (const Tiling*)tiling;",
             "  char* const memory = (char*)workspace;",
             "  int32_t code = 0;"]
    for p in program.nests:
        k = p.number
        lines += ["  for (int64_t b = Max(first_block, t->begin%d); "
                  "b < Min(last_block, t->end%d); ++b) {" % (k, k),
                  "    code |= nest%d(gm, memory, t, b - t->begin%d);" % (k, k), "  }"]
    lines += ["  (void)%s;" % name for name in ("gm_bytes", "block_dim", "error", "error_capacity")]
    return "\n".join(lines + ["  return code;", "}", ""])
