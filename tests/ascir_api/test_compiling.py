"""Section 10 of the API: Autofuser, Schedule, CodeGen and what they hand out."""

import re
import subprocess

import pytest

from tests.ascir_api.graphs import concatenated, fresh, pointwise, wrapped
from tests.ascir_api.test_tools import compute_graph_text
from tf_autofuse.ascir_api import functional as f
from tf_autofuse.ascir_api.compiling import FusedScheduledResult
from tf_autofuse.ascir_api.graphs import state_of
from tf_autofuse.schedule.impl_graph import ImplGraph


@pytest.fixture
def autofuser(pyautofuse):
    return pyautofuse.Autofuser(pyautofuse.AutofuserOptions())


def raises(error, text, call, *arguments):
    with pytest.raises(error) as caught:
        call(*arguments)
    assert str(caught.value) == text
    return caught.value.__cause__


def test_options(pyautofuse):
    for arguments in ((), (3,), (pyautofuse.AutofuserOptions(),) * 2):
        with pytest.raises(TypeError):
            pyautofuse.Autofuser(*arguments)
    options = pyautofuse.AutofuserOptions("ignored", tiling_lib_path=3, graph_type="x", other=1)
    with pytest.raises(AttributeError):
        options.graph_type
    for cls in (pyautofuse.Schedule, pyautofuse.CodeGen):
        cls(options, tiling_lib_path="")
    with pytest.raises(TypeError):
        FusedScheduledResult()


def test_schedule(pyautofuse, ascir, autofuser):
    graph = pointwise(ascir)
    result = autofuser.schedule(graph)
    assert (result.get_name(), result.get_input_num(), result.get_output_num()) == (graph.get_name(), 1, 1)
    assert (result.is_cube_type(), result.is_conv_type(), result.get_cube_attributes()) == (False, False, {})
    assert all(isinstance(impl, ImplGraph) for impl in result.scheduled) and result.fused.inputs
    named = pyautofuse.Autofuser(pyautofuse.AutofuserOptions(graph_type=1)).schedule(pointwise(ascir))
    assert named.get_name() == ""
    raises(ValueError, "autofuse input args error", autofuser.schedule)
    raises(ValueError, "autofuse input args error", autofuser.schedule, graph, graph)
    for bad in (3, None, ascir.HintComputeGraph()):
        raises(RuntimeError, "schedule requires hint graph or fused graph", autofuser.schedule, bad)


def test_schedule_changes_the_graph(ascir, autofuser):
    graph = fresh(ascir)
    axes = [graph.create_axis("z0", 100)]
    data = [ascir.ops.Data("d%d" % i, graph) for i in range(3)]
    for op in data:
        op.attr.ir_attr.index, op.attr.sched.axis = 7, axes
    loads = [f.Load(graph, op.y, axis=axes) for op in data[:2]]
    f.Exp(graph, loads[0], axis=axes)  # nobody reads it
    f.Output(graph, f.Store(graph, f.Add(graph, loads[1], loads[0], axis=axes), axis=axes))
    result = autofuser.schedule(graph)
    text = ascir.utils.debug_str(graph)
    assert [n.attributes["index"] for n in state_of(graph).of_type("Data")] == [0, 1, 2]
    assert "Exp" not in text and "d2: Data" in text and result.get_input_num() == 3
    assert (
        "  d0: Data (0)\n    .ir_attr =  {.index = i: 0}\n    .y: float32\n" in text
    )  # no .axis line any more
    assert "    .axis = {z0, }\n    .x = d0.y\n" in text


def failing(ascir):
    """Graphs that can't be scheduled, each with a word of the reason."""
    graph = fresh(ascir)
    ascir.ops.Data("d", graph)
    yield graph, "no Output"
    unequal = pointwise(ascir)
    state_of(unequal).nodes[2].outputs[0].strides.pop()
    yield unequal, "axes"
    unsupported = fresh(ascir)
    axes = [unsupported.create_axis("z0", 8)]
    op = ascir.ops.Unsupported("u", unsupported)
    op.y.dtype = 0
    store, output = ascir.ops.Store("s"), ascir.ops.Output("o")
    store.x, output.x = op, store
    store.attr.sched.axis = store.y.axis = axes
    store.y.size, store.y.strides = [8], [1]
    yield unsupported, "Unsupported"
    yield ascir.FusedGraph("empty"), "AscGraph"
    root = pointwise(ascir)
    state_of(root).axes[0].size = (root.create_size("s0") / 2)._e
    yield root, "integer"


def test_failures(pyautofuse, ascir, autofuser):
    for graph, word in failing(ascir):
        cause = raises(RuntimeError, "Optimize fail", autofuser.schedule, graph)
        assert word in str(cause)
        raises(RuntimeError, "Optimize fail", autofuser.autofuse_backend, graph)
    empty = pyautofuse.Schedule().schedule(next(failing(ascir))[0])
    assert (empty.get_input_num(), empty.get_output_num(), empty.fused, empty.scheduled) == (1, 0, None, None)
    raises(TypeError, "Codegen generate kernel failed or abort", autofuser.codegen, empty)
    codegen = pyautofuse.CodeGen()
    with pytest.raises(ValueError, match="^codegen generate kernel fail: scheduling failed"):
        codegen.device_code_generator(empty)
    raises(ValueError, "codegen generate host fail", codegen.host_code_generator, empty, None, [], "", "")
    raises(ValueError, "codegen generate pgo fail", codegen.pgo_code_generator, empty, "")


def test_other_architectures_have_no_kernels(ascir, autofuser, on_5102):
    cause = raises(RuntimeError, "Optimize fail", autofuser.schedule, pointwise(ascir))
    assert "5102" in str(cause)


def test_matrix_products(pyautofuse, ascir, autofuser):
    graph, ops = fresh(ascir), ascir.ops
    x1, x2, bias = [f.Data(graph, dtype=1) for _ in range(3)]
    product, store, output = ops.BatchMatMulBias("m"), ops.Store("s"), ops.Output("o")
    product.x1, product.x2, product.bias, store.x, output.x = x1, x2, bias, product, store
    product.y.dtype, product.attr.ir_attr.adj_x2, product.attr.ir_attr.enable_hf32 = 0, 1, 1
    raises(RuntimeError, "Optimize fail", autofuser.schedule, graph)
    result = pyautofuse.Schedule().schedule(graph)
    assert result.is_cube_type() and not result.is_conv_type()
    assert result.get_cube_attributes() == {
        "cube_attributes": {
            "has_relu": False,
            "is_batch": True,
            "transpose_x1": False,
            "transpose_x2": True,
            "offset_x": 0,
            "enable_hf32": True,
            "type_size": 4,
            "input_num": 3,
        }
    }


def test_codegen(ascir, autofuser):
    result = autofuser.schedule(pointwise(ascir))
    tiling_data, tiling, kernel = autofuser.codegen(result)
    assert (
        tiling_data.startswith("#ifndef __Autofuse_Tiling_Data_H__\n")
        and "struct AutofuseTilingData {" in tiling_data
    )
    assert "__global__ __aicore__ void" in kernel and '#include "autofuse_tiling_data.h"' in kernel
    assert re.findall("^// AUTOFUSE_SPLIT_FILE_(BEGIN|END): (.*)$", tiling, re.M) == [
        (edge, key) for key in ("TilingHead", "tiling_def_and_tiling_const") for edge in ("BEGIN", "END")
    ]
    assert autofuser.autofuse_backend(pointwise(ascir))[0] == tiling_data
    raises(ValueError, "codegen requires a list of schedule result", autofuser.codegen)
    raises(TypeError, "codegen requires FusedScheduledResult", autofuser.codegen, 3)


_CALLER = """
#include <cstdio>
#include "common.h"
extern "C" int64_t AutofuseTiling(uint32_t, uint32_t, AutofuseTilingData*, uint32_t*, uint32_t*, ResLimit*);
extern "C" size_t GetTilingDataSize(void);
extern "C" bool AutofuseIsStaticShape(void);
int main() {
  AutofuseTilingData tiling;
  uint32_t workspace = 1, blocks = 0, few = 0;
  ResLimit limit = {1, 3, 0, 0, {0}};
  int64_t code = AutofuseTiling(4096, 1000, &tiling, &workspace, &blocks, nullptr);
  code += AutofuseTiling(4096, 1000, &tiling, &workspace, &few, &limit);
  std::printf("%d %d %u %u %u\\n", (int)code, AutofuseIsStaticShape(), workspace, blocks, few);
  return GetTilingDataSize() == sizeof(tiling) ? 0 : 1;
}
"""


def test_the_host_text_is_what_a_caller_compiles(ascir, autofuser, tmp_path):
    tiling_data, tiling, _ = autofuser.codegen(autofuser.schedule(pointwise(ascir)))
    head, unit = re.findall("BEGIN: .*\n((?:.*\n)*?)// AUTOFUSE_SPLIT_FILE_END", tiling)
    for name, text in (
        ("autofuse_tiling_data.h", tiling_data),
        ("autofuse_tiling_func_common.h", head),
        ("unit.cpp", unit),
        ("caller.cpp", _CALLER.replace("common.h", "autofuse_tiling_func_common.h")),
    ):
        (tmp_path / name).write_text(text)
    subprocess.check_call(["g++", "-std=c++14", "-o", "caller", "unit.cpp", "caller.cpp"], cwd=str(tmp_path))
    words = subprocess.check_output(["./caller"], cwd=str(tmp_path)).split()
    assert words[:3] == [b"0", b"0", b"0"] and int(words[3]) == 40 and int(words[4]) == 3


_CONSTANTS = """
#include <cstdio>
#include <cstring>
#include <string>
#include "autofuse_tiling_func_common.h"
extern "C" int64_t AutofuseTilingWithConfig(const char*, %sAutofuseTilingData*, uint32_t*, uint32_t*,
                                            ResLimit*, int32_t);
extern "C" std::string GetTilingDataRepr(const AutofuseTilingData*);
%s
int main() {
  AutofuseTilingData tiling = {};
  uint32_t workspace = 1, blocks = 0;
  const int64_t code = AutofuseTilingWithConfig("none", %s&tiling, &workspace, &blocks, nullptr, -1);
  const int64_t by_number = AutofuseTilingWithConfig("none", %s&tiling, &workspace, &blocks, nullptr, 3);
  std::printf("%%d %%d %%u\\n%%s\\n", (int)code, (int)by_number, blocks, GetTilingDataRepr(&tiling).c_str());
  %s
  return 0;
}
"""

_AGAIN = """
#include <cstdio>
#include <cstring>
#include "autofuse_tiling_data.h"
int main() {
  const AutofuseTilingData again = REPR;
  unsigned char zero[sizeof(again)] = {0};
  std::printf("%u %u %d\\n", (unsigned)sizeof(again), (unsigned)again.block_dim,
              std::memcmp(&again, zero, sizeof(again)) != 0);
}
"""


def _built(folder, tiling_data, tiling, caller):
    head, unit = re.findall("BEGIN: .*\n((?:.*\n)*?)// AUTOFUSE_SPLIT_FILE_END", tiling)
    for name, text in (
        ("autofuse_tiling_data.h", tiling_data),
        ("autofuse_tiling_func_common.h", head),
        ("unit.cpp", unit),
        ("caller.cpp", caller),
    ):
        (folder / name).write_text(text)
    subprocess.check_call(["g++", "-std=c++14", "-o", "caller", "unit.cpp", "caller.cpp"], cwd=str(folder))
    return subprocess.check_output(["./caller"], cwd=str(folder), universal_newlines=True)


def _run_again(folder, header, representation):
    (folder / "autofuse_tiling_data.h").write_text(header)
    (folder / "again.cpp").write_text(_AGAIN.replace("REPR", representation))
    subprocess.check_call(["g++", "-std=c++14", "-o", "again", "again.cpp"], cwd=str(folder))
    return subprocess.check_output(["./again"], cwd=str(folder), universal_newlines=True).split()


def test_tiling_data_as_text(ascir, autofuser, tmp_path):
    """Of a graph with symbols: an expression that is the same tiling data again; no constants."""
    tiling_data, tiling, _ = autofuser.codegen(autofuser.schedule(pointwise(ascir)))
    assert "GenConstTilingData" not in tiling
    values = "4096, 1000, "
    caller = _CONSTANTS % ("uint32_t, uint32_t, ", "", values, values, "")
    first, representation = _built(tmp_path, tiling_data, tiling, caller).splitlines()
    assert first == "0 -1 40" and representation.startswith("AutofuseTilingData{")
    assert _run_again(tmp_path, tiling_data, representation)[1:] == ["40", "1"]


def test_constant_tiling_data(ascir, autofuser, tmp_path):
    """Of a graph without symbols: the header with its values; limits count, and 256 bytes of UB are kept."""
    tiling_data, tiling, _ = autofuser.codegen(autofuser.schedule(pointwise(ascir, sizes=(4096, 1000))))
    declared = 'extern "C" const char* GenConstTilingData(char*, int, int);'
    printed = 'std::printf("%s", GenConstTilingData(nullptr, 4, 196608));'
    caller = _CONSTANTS % ("", declared, "", "", printed)
    first, representation, header = _built(tmp_path, tiling_data, tiling, caller).split("\n", 2)
    assert first.startswith("0 -1 ") and int(first.split()[2]) > 4
    assert header.startswith("#ifndef __Autofuse_Tiling_Data_H__\n")
    assert re.search(r"const uint32_t block_dim = [1-4];", header)
    size, blocks, filled = _run_again(tmp_path, header, "{}")
    assert filled == "1" and 1 <= int(blocks) <= 4
    assert size == _run_again(tmp_path, tiling_data, representation)[0]


def test_device_code(pyautofuse, ascir, autofuser):
    codegen = pyautofuse.CodeGen()
    result = autofuser.schedule(pointwise(ascir))
    tilings, kernels = codegen.device_code_generator(result)
    texts = autofuser.codegen(result)
    assert tilings == {"default": texts[0]} and kernels == {"default": texts[2]}
    raises(ValueError, "codegen param parse failed", codegen.device_code_generator)
    raises(TypeError, "device_code_generator requires FusedScheduledResult", codegen.device_code_generator, 3)


def test_host_code(pyautofuse, ascir, autofuser):
    codegen, result = pyautofuse.CodeGen(), autofuser.schedule(pointwise(ascir))
    info = ascir.utils.deserialize("symbol_source_info", '{"s0": "GetDim(0, 0);"}')
    tilings, shape = codegen.host_code_generator(
        result, info, [["s0", "4"], ["(Rational(1 , 2) * s0)"]], "", "0"
    )
    assert set(tilings) == {"default"} and set(tilings["default"]) == {
        "TilingHead",
        "tiling_def_and_tiling_const",
    }
    assert 'extern "C" ge::graphStatus InferShape(InferShapeSymbolEvalContext *context) {' in shape
    assert shape.count("SetDimNum(0)") == 2 and shape.count("AppendDim(") == 3 and "1e-5" in shape
    assert "auto s0 = context->GetDim(0, 0);" in shape
    host = codegen.host_code_generator
    assert host(result, None, [], "", "")[1].count("AppendDim") == 0
    for arguments, error, text in (
        ((result, None, [], ""), ValueError, "codegen param parse failed"),
        ((result, None, [], 3, ""), ValueError, "codegen param parse failed"),
        ((result, None, [], "", 40), ValueError, "codegen param parse failed"),
        ((result, 3, [], "", ""), ValueError, "host_code_generator shape info type invalid"),
        ((3, None, [], "", ""), TypeError, "host_code_generator requires FusedScheduledResult"),
        ((result, None, ["s0"], "", ""), ValueError, "output_symbol_shape parse fail"),
        ((result, None, [[3]], "", ""), ValueError, "output_symbol_shape parse fail"),
    ):
        raises(error, text, host, *arguments)


def test_kernel_bytes(pyautofuse, tmp_path):
    codegen, path = pyautofuse.CodeGen(), tmp_path / "kernel.o"
    path.write_bytes(bytes(range(256)) + b"\xff")
    source = codegen.get_kernel_and_json_generator(str(path), "")
    rows = re.search(r"\{\n((?:    [\d, ]+\n)+)  \};", source).group(1).strip().split("\n")
    assert [len(re.findall(r"\d+", row)) for row in rows] == [20] * 12 + [17]
    main = """
#include <cstdio>
int main() {
  std::vector<char> v;
  GetKernelBin(v);
  fwrite(v.data(), 1, v.size(), stdout);
}
"""
    (tmp_path / "m.cpp").write_text(source + main)
    subprocess.check_call(["g++", "-o", "m", "m.cpp"], cwd=str(tmp_path))
    assert subprocess.check_output(["./m"], cwd=str(tmp_path)) == path.read_bytes()
    path.write_bytes(b"")
    assert "assign(first, first + 0)" in codegen.get_kernel_and_json_generator(str(path), "")
    raises(
        ValueError,
        "codegen generate get_kernel fail",
        codegen.get_kernel_and_json_generator,
        "/nowhere/k",
        "",
    )
    raises(ValueError, "codegen param parse failed", codegen.get_kernel_and_json_generator, str(path))


def test_pgo_source(pyautofuse, ascir, autofuser, tmp_path):
    codegen, result = pyautofuse.CodeGen(), autofuser.schedule(pointwise(ascir))
    source = codegen.pgo_code_generator(result, str(tmp_path))
    (tmp_path / "pgo.cpp").write_text(source)
    (tmp_path / "kernel.cpp").write_text("""
#include <cstdint>
struct AutofuseMachine { uint32_t core_num; uint32_t reserved; uint64_t ub_size; };
extern "C" int64_t autofuse_tiling_size(void) { return 8; }
extern "C" int32_t autofuse_tiling(const int64_t* s, const AutofuseMachine* m, void*, uint32_t* b,
                                   uint64_t* w) {
  *b = m->core_num < s[0] ? m->core_num : s[0]; *w = 64; return m->core_num == 2;
}
extern "C" int32_t autofuse_run_blocks(void* const*, const uint64_t* n, void*, const void*, uint32_t,
                                       uint32_t, uint32_t, char*, uint64_t) { return n[1] != 24; }
""")
    subprocess.check_call(["g++", "-std=c++14", "-o", "pgo", "pgo.cpp", "kernel.cpp"], cwd=str(tmp_path))
    assert subprocess.call(["./pgo"], cwd=str(tmp_path), stderr=subprocess.DEVNULL) == 2
    subprocess.check_call(["./pgo", "3", "5", "12", "24"], cwd=str(tmp_path))
    rows = [line.split() for line in (tmp_path / "plans.txt").read_text().splitlines()]
    assert [row[:2] for row in rows] == [[str(n), str(min(n, 3))] for n in range(1, 41) if n != 2]
    raises(ValueError, "codegen param parse failed", codegen.pgo_code_generator, result)
    raises(TypeError, "pgo_code_generator requires FusedScheduledResult", codegen.pgo_code_generator, 3, "")


def test_schedule_of_a_compute_graph(pyautofuse, ascir):
    schedule = pyautofuse.Schedule()
    result = schedule.scheduleV2(ascir.utils.deserialize("compute_graph", compute_graph_text(ascir)))
    assert (result.get_name(), result.get_input_num(), result.get_output_num()) == ("ge", 1, 1)
    assert len(result.scheduled) >= 1
    raises(RuntimeError, "Optimize fail", schedule.scheduleV2, ascir.HintComputeGraph())
    for bad in (3, pointwise(ascir)):
        raises(ValueError, "Schedule requires a hint compute graph", schedule.scheduleV2, bad)
    for bad in ((), (3,), (ascir.FusedGraph("f"),)):
        raises(ValueError, "Schedule requires a hint graph", schedule.schedule, *bad)


def test_counts_of_results(pyautofuse, ascir):
    graph = fresh(ascir)
    ascir.ops.Data("d", graph), ascir.ops.ScalarData("e", graph)
    result = pyautofuse.Schedule().schedule(graph)
    assert (result.get_input_num(), result.get_output_num()) == (2, 0)
    assert concatenated(ascir).get_input_num() == 3 and wrapped(ascir)._state.of_type("AscGraph")
