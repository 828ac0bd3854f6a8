"""The texts that Autofuser.codegen and CodeGen hand out, made of a kernel's sources.

tiling data: the struct that host and kernel share, as a header. kernel: the device source. tiling: the
host's files between marker lines, or by key. The host part has this project's own interface
(codegen/abi.py) and, for callers of the API, AutofuseTiling, GetTilingDataSize,
AutofuseIsStaticShape and those of tiling_texts.py.
"""

from typing import Dict, List, Mapping, Sequence, Tuple

from tf_autofuse.ascir_api.project_sizes import api_name
from tf_autofuse.ascir_api.running import Compiled
from tf_autofuse.ascir_api.tiling_texts import functions
from tf_autofuse.codegen.sources import DEVICE_SOURCE, HOST_SOURCE, TILING_HEADER

_DATA_HEADER = "autofuse_tiling_data.h"
_COMMON_HEADER = "autofuse_tiling_func_common.h"
_HEAD = "TilingHead"
_ENTRY = "tiling_def_and_tiling_const"
_BYTES_PER_LINE = 20
_GUARD = "__Autofuse_Tiling_Data_H__"


def texts(made: Compiled) -> Tuple[str, str, str]:
    """(tiling_data, tiling, kernel)"""
    parts = []
    for key, text in host_files(made).items():
        parts += ["// AUTOFUSE_SPLIT_FILE_BEGIN: %s\n" % key, text, "// AUTOFUSE_SPLIT_FILE_END: %s\n" % key]
    return tiling_data(made), "".join(parts), _renamed(made.sources.text(DEVICE_SOURCE), _DATA_HEADER)


def _renamed(source: str, header: str) -> str:
    return source.replace('#include "%s"' % TILING_HEADER, '#include "%s"' % header)


def tiling_data(made: Compiled) -> str:
    body = made.sources.text(TILING_HEADER).replace("#pragma once\n", "")
    return "#ifndef %s\n#define %s\n%s#endif  // %s\n" % (_GUARD, _GUARD, body, _GUARD)


def host_files(made: Compiled) -> Dict[str, str]:
    """Host sources by key: a header and one translation unit."""
    head = "\n".join(
        (
            "#pragma once",
            "#include <cstddef>",
            "#include <cstdint>",
            "#include <string>",
            '#include "%s"' % _DATA_HEADER,
            "",
            "// Limits of one call; only valid_num != 0 makes the others count.",
            "struct ResLimit {",
            "  uint32_t valid_num;",
            "  uint32_t aiv_num;",
            "  uint32_t aic_num;",
            "  uint32_t ub_size;",
            "  uint32_t resv[10];",
            "};",
            "",
        )
    )
    return {_HEAD: head, _ENTRY: _renamed(made.sources.text(HOST_SOURCE), _COMMON_HEADER) + _entries(made)}


def _entries(made: Compiled) -> str:
    """The API's own entry points over codegen/abi.py's."""
    from tf_autofuse.ascir_api import platform
    from tf_autofuse.machine import usable_ub

    names = [v.name for v in made.converted.fused.sizes]
    machine = platform.machine()
    parameters = "".join("uint32_t %s, " % n for n in sorted(names, key=api_name))
    values = ", ".join("static_cast<int64_t>(%s)" % n for n in names) or "0"
    return "\n".join(
        (
            "",
            'extern "C" __attribute__((visibility("default"))) int64_t AutofuseTiling(',
            "    %sAutofuseTilingData* tiling, uint32_t* workspaceSize, uint32_t* blockDim," % parameters,
            "    ResLimit* limit = nullptr) {",
            "  const int64_t sizes[] = {%s};" % values,
            "  AutofuseMachine machine = {%du, 0u, %dull};"
            % (machine.vector_cores, usable_ub(machine, False)),
            "  if (limit != nullptr && limit->valid_num != 0) {",
            "    if (limit->aiv_num != 0) machine.core_num = limit->aiv_num;",
            "    if (limit->ub_size != 0) machine.ub_size = limit->ub_size;",
            "  }",
            "  uint64_t workspace = 0;",
            "  int32_t code = autofuse_tiling(sizes, &machine, tiling, blockDim, &workspace);",
            "  *workspaceSize = static_cast<uint32_t>(workspace);",
            "  return code;",
            "}",
            'extern "C" __attribute__((visibility("default"))) size_t GetTilingDataSize(void) {',
            "  return sizeof(AutofuseTilingData);",
            "}",
            'extern "C" __attribute__((visibility("default"))) bool AutofuseIsStaticShape(void) {'
            "  return %s; }" % ("false" if names else "true"),
            functions(made.sources.text(TILING_HEADER), sorted(names, key=api_name), _GUARD),
        )
    )


def infer_shape_source(entries: Mapping[str, str], output_shape: Sequence[Sequence[str]]) -> str:
    """The source of InferShape: entries become variables, each output gets the dims of its expressions. A
    dim that is a quotient is rounded, and refused at run time where it is off by more than 1e-5."""
    lines = ['extern "C" ge::graphStatus InferShape(InferShapeSymbolEvalContext *context) {']
    for name in sorted(entries):
        lines.append("  auto %s = context->%s" % (name, entries[name].rstrip(";") + ";"))
    for number, dims in enumerate(output_shape):
        lines += ["  {", "    auto shape = context->GetOutputShape(%d);" % number, "    shape->SetDimNum(0);"]
        for dim in dims:
            if "Rational" in dim:
                lines += [
                    "    {",
                    "      const double exact = %s;" % dim,
                    "      const double whole = std::round(exact);",
                    "      if (std::fabs(exact - whole) > 1e-5) return ge::GRAPH_FAILED;",
                    "      shape->AppendDim(static_cast<int64_t>(whole));",
                    "    }",
                ]
            else:
                lines.append("    shape->AppendDim(%s);" % dim)
        lines.append("  }")
    helpers = "inline double Rational(double above, double below) { return above / below; }\n"
    return (
        "#include <cmath>\n#include <cstdint>\n\n"
        + helpers
        + "\n".join(lines + ["  return ge::GRAPH_SUCCESS;", "}", ""])
    )


def kernel_bytes_source(content: bytes) -> str:
    """GetKernelBin, with the bytes as decimal numbers."""
    rows: List[str] = []
    for at in range(0, len(content), _BYTES_PER_LINE):
        rows.append("    " + "".join("%d, " % b for b in content[at : at + _BYTES_PER_LINE]).rstrip())
    return "\n".join(
        (
            "#include <cstdint>",
            "#include <vector>",
            "",
            'extern "C" void GetKernelBin(std::vector<char> &kernel_bin) {',
            "  static const uint8_t bytes[] = {",
            "\n".join(rows or ["    0"]),
            "  };",
            "  const char *first = reinterpret_cast<const char *>(bytes);",
            "  kernel_bin.assign(first, first + %d);" % len(content),
            "}",
            "",
        )
    )


def pgo_source(made: Compiled, pgo_dir: str) -> str:
    """A program that times the kernel with every number of cores, linked with the kernel library: arguments
    are the symbols' values and then the bytes of every tensor; one line `cores block_dim nanoseconds` per
    plan goes to pgo_dir/plans.txt (standard output where pgo_dir is empty)."""
    from tf_autofuse.ascir_api import platform
    from tf_autofuse.machine import usable_ub

    fused, machine = made.converted.fused, platform.machine()
    tensors, symbols = len(fused.inputs) + len(fused.outputs), len(fused.sizes)
    path = pgo_dir.replace("\\", "\\\\").replace('"', '\\"')
    return _PGO % {
        "symbols": symbols,
        "tensors": tensors,
        "cores": machine.vector_cores,
        "ub": usable_ub(machine, False),
        "path": path + "/plans.txt" if path else "",
    }


_PGO = """\
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct AutofuseMachine { uint32_t core_num; uint32_t reserved; uint64_t ub_size; };
extern "C" {
int64_t autofuse_tiling_size(void);
int32_t autofuse_tiling(const int64_t*, const AutofuseMachine*, void*, uint32_t*, uint64_t*);
int32_t autofuse_run_blocks(void* const*, const uint64_t*, void*, const void*, uint32_t, uint32_t, uint32_t,
                            char*, uint64_t);
}

int main(int argc, char** argv) {
  const int symbols = %(symbols)d, tensors = %(tensors)d;
  if (argc != 1 + symbols + tensors) {
    std::fprintf(stderr, "%%d symbol values and %%d tensor sizes in bytes are needed\\n", symbols, tensors);
    return 2;
  }
  std::vector<int64_t> sizes(symbols + 1);
  for (int i = 0; i < symbols; ++i) sizes[i] = std::atoll(argv[1 + i]);
  std::vector<std::vector<uint64_t>> memory(tensors);
  std::vector<void*> gm(tensors);
  std::vector<uint64_t> bytes(tensors);
  for (int i = 0; i < tensors; ++i) {
    bytes[i] = std::strtoull(argv[1 + symbols + i], nullptr, 10);
    memory[i].resize(bytes[i] / 8 + 8);
    gm[i] = memory[i].data();
  }
  const char* path = "%(path)s";
  FILE* out = path[0] != 0 ? std::fopen(path, "w") : stdout;
  if (out == nullptr) return 3;
  std::vector<uint64_t> tiling(autofuse_tiling_size() / 8 + 1);
  for (uint32_t cores = 1; cores <= %(cores)du; ++cores) {
    AutofuseMachine machine = {cores, 0, %(ub)dull};
    uint32_t block_dim = 0;
    uint64_t workspace_bytes = 0;
    if (autofuse_tiling(sizes.data(), &machine, tiling.data(), &block_dim, &workspace_bytes) != 0) continue;
    std::vector<uint64_t> workspace(workspace_bytes / 8 + 8);
    char error[4096] = {0};
    auto start = std::chrono::steady_clock::now();
    int32_t code = 0;
    if (block_dim != 0) {
      code = autofuse_run_blocks(gm.data(), bytes.data(), workspace.data(), tiling.data(), block_dim, 0,
                                 block_dim, error, sizeof(error));
    }
    if (code == 1) {
      std::fprintf(stderr, "%%s\\n", error);
      return 1;
    }
    auto spent = std::chrono::steady_clock::now() - start;
    std::fprintf(out, "%%u %%u %%lld\\n", cores, block_dim,
                 static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()));
  }
  return out == stdout || std::fclose(out) == 0 ? 0 : 3;
}
"""
