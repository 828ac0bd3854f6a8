"""The generated shape function against the same facts in Python: it accepts exactly what the kernel is right
for."""

import ctypes
import itertools
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_autofuse.codegen.abi import MACHINE_STRUCT, SYMBOLS
from tf_autofuse.codegen.ascendc import generate as generate_module
from tf_autofuse.codegen.ascendc.shape import implied_broadcasts, shape_function
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar, bind
from tf_autofuse.symbolic.size import broadcast_size, evaluate, product, symbol

S0, S1, S2 = symbol("s0"), symbol("s1"), symbol("s2")


def fused(inputs, outputs, sizes=(), guards=()):
    def io(dims):
        return KernelIO(FLOAT32, tuple(dims))

    return FusedGraph(
        "f", "pointwise", tuple(map(io, inputs)), tuple(map(io, outputs)), tuple(sizes), tuple(guards), ()
    )


GRAPHS = {
    "static": fused([(3, 4), (4,)], [(3, 4)]),
    "rank 0": fused([(), ()], [()]),
    "no inputs": fused([], [(2,)]),
    "one symbol": fused([(S0, 4)], [(S0, 4)], [SizeVar("s0", InputDim(0, 0))]),
    "a symbol twice": fused([(S0, 4), (S0,)], [(S0, 4)], [SizeVar("s0", InputDim(0, 0))]),
    "symbols in one tensor": fused(
        [(S0, S1)], [(S0, S1)], [SizeVar("s0", InputDim(0, 0)), SizeVar("s1", InputDim(0, 1))]
    ),
    "an expression": fused([(S0,), (S0 * 2 + 1,)], [(S0 * 2 + 1,)], [SizeVar("s0", InputDim(0, 0))]),
    "a difference": fused([(S0,)], [(S0 - 2,)], [SizeVar("s0", InputDim(0, 0))]),
    "broadcast": fused(
        [(S0, 4), (S1, 1)],
        [(S2, 4)],
        [SizeVar("s0", InputDim(0, 0)), SizeVar("s1", InputDim(1, 0)), SizeVar("s2", broadcast_size(S0, S1))],
    ),
    "guards": fused(
        [(S0,), (S1,)],
        [(S0,)],
        [SizeVar("s0", InputDim(0, 0)), SizeVar("s1", InputDim(1, 0))],
        [Guard("eq", S0 * 2, S1, "the concat"), Guard("broadcast", S1, 6)],
    ),
    "a decided guard": fused([(3,)], [(3,)], (), [Guard("eq", 3, 3)]),
}
DIMS = (0, 1, 2, 3, 4, 5, 6, 12)


def reference(graph, dims):
    """(output dims, symbol values) or None, from the graph alone."""
    values = bind(graph.sizes, dims)
    for tensor, given_dims in zip(graph.inputs, dims):
        if any(evaluate(s, values) != d for s, d in zip(tensor.dims, given_dims)):
            return None
    if not all(g.holds(values) for g in graph.guards + implied_broadcasts(graph)):
        return None
    out = tuple(tuple(evaluate(s, values) for s in t.dims) for t in graph.outputs)
    if any(d < 0 for t in out for d in t) or any(product(max(1, d) for d in t) > 2**62 for t in out):
        return None
    return out, tuple(values[v.name] for v in graph.sizes)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "tiling_data.h").write_text("#pragma once\n")
    names = {}
    for i, (name, graph) in enumerate(GRAPHS.items()):
        base = {"name": name, "symbol": "f", "kind": "pointwise", "io": []}
        text = generate_module.render_text(
            "host.cpp.j2", base, **dict(generate_module.shape_values(graph), tiling="")
        )
        (folder / ("h%d.cpp" % i)).write_text(text)
        subprocess.run(
            [
                "g++",
                "-std=c++14",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-function",
                "-fPIC",
                "-shared",
                "h%d.cpp" % i,
                "-o",
                "h%d.so" % i,
            ],
            cwd=str(folder),
            check=True,
        )
        names[name] = ctypes.CDLL(str(folder / ("h%d.so" % i)))
    return names


def call(library, graph, dims):
    flat = [d for t in dims for d in t]
    given_dims = (ctypes.c_int64 * max(1, len(flat)))(*flat)
    out = (ctypes.c_int64 * 16)(*[-7] * 16)
    sizes = (ctypes.c_int64 * 16)(*[-7] * 16)
    code = library.autofuse_shape(given_dims, out, sizes)
    if code:
        library.autofuse_check_text.restype = ctypes.c_char_p
        assert library.autofuse_check_text(code) != b""
        return None
    at, result = 0, []
    for t in graph.outputs:
        result.append(tuple(out[at : at + len(t.dims)]))
        at += len(t.dims)
    assert out[at] == -7 and sizes[len(graph.sizes)] == -7  # nothing is written beyond
    return tuple(result), tuple(sizes[: len(graph.sizes)])


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_small_dims_one_by_one(libraries, name):
    graph = GRAPHS[name]
    accepted = refused = 0
    for flat in itertools.product(DIMS, repeat=sum(len(t.dims) for t in graph.inputs)):
        values = iter(flat)
        dims = tuple(tuple(next(values) for _ in t.dims) for t in graph.inputs)
        got, expected = call(libraries[name], graph, dims), reference(graph, dims)
        assert got == expected, dims
        accepted, refused = accepted + (expected is not None), refused + (expected is None)
    assert accepted
    free = len(graph.sizes) - len(graph.guards) == sum(len(t.dims) for t in graph.inputs)
    assert refused or free or not any(t.dims for t in graph.inputs)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(GRAPHS)),
    st.lists(st.sampled_from([0, 1, 2, 4, 97, 2**31, 2**40, 2**61, 2**62 - 1]), min_size=4, max_size=4),
)
def test_huge_dims(libraries, name, flat):
    graph = GRAPHS[name]
    values = iter(flat)
    dims = tuple(tuple(next(values) for _ in t.dims) for t in graph.inputs)
    assert call(libraries[name], graph, dims) == reference(graph, dims)


def test_checks_say_what_they_check():
    texts = [c.text for c in shape_function(GRAPHS["guards"]).checks]
    assert texts[0] == "2*s0 == s1" and "6" in texts[1]
    assert [c.number for c in shape_function(GRAPHS["guards"]).checks] == [1, 2, 3]
    assert [c.text for c in shape_function(GRAPHS["static"]).checks] == [
        "dim 0 of input 0 is 3",
        "dim 1 of input 0 is 4",
        "dim 0 of input 1 is 4",
    ]


def test_the_interface_is_complete():
    assert {s.name for s in SYMBOLS if not s.optional} == {
        "autofuse_abi_version",
        "autofuse_shape",
        "autofuse_check_text",
        "autofuse_tiling_size",
        "autofuse_tiling",
        "autofuse_run_blocks",
    }
    assert "uint32_t core_num" in MACHINE_STRUCT


def test_an_unknown_guard_is_an_error():
    with pytest.raises(ValueError, match="unknown kind"):
        shape_function(fused([(S0,)], [(S0,)], [SizeVar("s0", InputDim(0, 0))], [Guard("less", S0, 5)]))
