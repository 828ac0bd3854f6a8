"""The serialized form: round trips, determinism, versions, damaged bytes, and that the generated module is
current."""
import math
import pathlib
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from tests.ir import samples
from tf_autofuse.ir import autofuse_pb2, proto
from tf_autofuse.ir.asc_graph import AscNode, AxisType, Memory, Position, Sched, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.dtypes import ALL_DTYPES, BFLOAT16, FLOAT32
from tf_autofuse.ir.proto import FormatError, from_bytes, to_bytes
from tf_autofuse.symbolic.size import symbol

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_round_trip(name):
    fused = samples.ALL[name]()
    data = to_bytes(fused)
    assert from_bytes(data) == fused and to_bytes(from_bytes(data)) == data == to_bytes(samples.ALL[name]())


def test_everything_that_a_graph_can_hold():
    node = AscNode(
        "n",
        "Abs",
        (TensorRef("m", 2),),
        (
            TensorAttr(
                BFLOAT16,
                (3, 1),
                (symbol("s0"), 1),
                (-4, 0),
                (1,),
                (symbol("t") * 2,),
                Memory(Position.VECIN, 2, 2),
            ),
            TensorAttr(FLOAT32),
        ),
        attrs(
            a=2**64 - 1,
            b=-(2**63),
            c=2**63,
            d=True,
            e=1.0,
            f=-0.0,
            g='ä\n"',
            h=symbol("s0") + 1,
            i=FLOAT32,
            j=(1, (False, 2.5), (), ("x", BFLOAT16)),
            k=float("-inf"),
            l=1,
        ),
        Sched((1, 2), 1),
        ("x/y:0", "z"),
    )
    fused = samples.run_time_broadcast()
    graph = fused.graphs[0]
    axis = replace(graph.axes[0], type=AxisType.MERGED, from_axes=(4, 5))
    graph = replace(graph, form="impl", nodes=(node,), axes=(axis,), loop_axes=(0,))
    fused = replace(fused, graphs=(graph,))
    again = from_bytes(to_bytes(fused))
    assert again == fused
    for (_, a), (_, b) in zip(again.graphs[0].nodes[0].attrs, node.attrs):
        assert type(a) is type(b) and repr(a) == repr(b)


def test_every_dtype_and_nan():
    fused = samples.fill()
    for dtype in ALL_DTYPES:
        changed = replace(fused, inputs=(fused.inputs[0]._replace(dtype=dtype),))
        assert from_bytes(to_bytes(changed)).inputs[0].dtype is dtype
    nodes = [n.with_attrs(value=math.nan) if n.type == "Scalar" else n for n in fused.graphs[1].nodes]
    changed = replace(fused, graphs=(fused.graphs[0], fused.graphs[1].with_nodes(nodes)))
    assert math.isnan(from_bytes(to_bytes(changed)).graphs[1].node("scalar_0").attr("value"))


def test_unwritable_attributes_are_refused():
    fused = samples.fill()
    nodes = [n.with_attrs(bad=[1]) for n in fused.graphs[0].nodes]
    with pytest.raises(TypeError, match="cannot hold a list"):
        to_bytes(replace(fused, graphs=(fused.graphs[0].with_nodes(nodes),)))


def renamed(fused, name, origin):
    names = dict(zip(fused.origin, origin))
    graphs = tuple(
        replace(g, name=name + g.name[len(fused.name):] if g.name.startswith(fused.name) else g.name,
                nodes=tuple(replace(n, origin=tuple(names.get(o, o) for o in n.origin)) for n in g.nodes))
        for g in fused.graphs)
    return replace(fused, name=name, origin=origin, graphs=graphs)


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_names_stand_in_the_header_only(name):
    fused = samples.ALL[name]()
    other = renamed(fused, "another", tuple("#%d" % i for i in range(len(fused.origin))))
    body = proto.body_bytes(fused)
    assert proto.body_bytes(other) == body
    assert proto.with_header(body, other.name, other.origin) == to_bytes(other)
    assert from_bytes(to_bytes(other)) == other


def test_names_from_elsewhere_are_kept():
    fused = samples.run_time_broadcast()
    nodes = tuple(replace(n, origin=("#1", "elsewhere")) for n in fused.graphs[0].nodes)
    odd = replace(fused, graphs=(replace(fused.graphs[0], name="#+odd", nodes=nodes),))
    assert from_bytes(to_bytes(odd)) == odd


def test_a_newer_format_is_refused_with_a_remedy():
    message = autofuse_pb2.FusedGraph.FromString(to_bytes(samples.fill()))
    message.format = proto.FORMAT + 1
    with pytest.raises(FormatError) as caught:
        from_bytes(message.SerializeToString())
    assert str(caught.value) == (
        "the fused graph fill has format 3; this version of tf_autofuse reads formats up to 2: "
        "upgrade it here, or optimize the graph again with this version"
    )


def test_unknown_fields_of_the_same_format_are_skipped():
    assert from_bytes(to_bytes(samples.fill()) + b"\xfa\x3f\x01x") == samples.fill()  # field 1023, one byte


@pytest.mark.parametrize(
    "damage, text",
    [
        (lambda m: m.graphs[0].axes.add(size="__import__('os')", type=0), "damaged"),
        (lambda m: setattr(m.inputs[0], "dtype", 99), "damaged"),
        (lambda m: setattr(m.graphs[0].axes[0], "type", 77), "damaged"),
        (lambda m: m.graphs[0].nodes[0].attrs.add(name="x"), "attribute without value"),
        (lambda m: setattr(m.graphs[0].nodes[1].outputs[0].memory, "position", "L1"), "damaged"),
        (lambda m: setattr(m, "format", 0), "no format number"),
    ],
)
def test_damaged_messages(damage, text):
    message = autofuse_pb2.FusedGraph.FromString(to_bytes(samples.fill()))
    damage(message)
    with pytest.raises(FormatError, match=text):
        from_bytes(message.SerializeToString())


@pytest.mark.filterwarnings("ignore:Unexpected end-group")
def test_a_stray_end_of_group_is_damage():
    with pytest.raises(FormatError):
        from_bytes(to_bytes(samples.fill()) + b"\x0c")


@pytest.mark.filterwarnings("ignore:Unexpected end-group")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_damage_never_raises_anything_else(data):
    original = to_bytes(samples.run_time_broadcast())
    cut = data.draw(st.integers(0, len(original)))
    changed = bytearray(original[:cut])
    for _ in range(data.draw(st.integers(0, 4))):
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        from_bytes(bytes(changed))
    except FormatError:
        pass


def test_bytes_do_not_depend_on_hashes():
    code = (
        "import sys; from tests.ir import samples; from tf_autofuse.ir.proto import to_bytes; "
        "sys.stdout.write(to_bytes(samples.run_time_broadcast()).hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            check=True,
            cwd=str(ROOT),
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {to_bytes(samples.run_time_broadcast()).hex().encode()}


def test_the_generated_module_is_current(tmp_path):
    tools = pytest.importorskip("grpc_tools.protoc")
    status = tools.main(
        [
            "protoc",
            "-I" + str(ROOT),
            "--python_out=" + str(tmp_path),
            str(ROOT / "tf_autofuse/ir/autofuse.proto"),
        ]
    )
    assert status == 0
    made = (tmp_path / "tf_autofuse/ir/autofuse_pb2.py").read_text()
    if "_builder.BuildTopDescriptorsAndMessages" in made:
        pytest.skip("this protoc writes modules for newer protobuf versions only")
    assert made == (ROOT / "tf_autofuse/ir/autofuse_pb2.py").read_text()
