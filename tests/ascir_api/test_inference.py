"""Section 7 of the API: dtype inference and checks, over the whole registry."""

import itertools

import pytest

from tf_autofuse.ascir_api import dtypes, platform
from tf_autofuse.ascir_api.operators_table import ROWS, registry_of

D = dtypes.BY_SHORT
UNDEFINED = dtypes.UNDEFINED
ALL = sorted(set(dtypes.NUMBERS.values()) - {UNDEFINED})


def infer(ascir, name, ins, outs=()):
    """The output dtypes of an operator with inputs of these dtypes."""
    graph = ascir.HintGraph("g")
    op = getattr(ascir.ops, name)("n", graph)
    sources = []
    for i, dtype in enumerate(ins):
        data = ascir.ops.Data("d%d" % i, graph)
        data.y.dtype = dtype
        sources.append(data)
    row = ROWS[name]
    for port, source in zip(row.inputs, sources):
        setattr(op, port.name, sources if port.is_list else source)
    for port, dtype in zip(row.outputs, outs):
        getattr(op, port.name).dtype = dtype
    op.infer_dtype()
    return [getattr(op, port.name).dtype for port in row.outputs]


def same_rule(row, registry):
    """For operators with one symbol: its dtypes, else None."""
    sets = row.dtypes.get(registry)
    if (
        row.inputs
        and sets is not None
        and len(sets) == 1
        and not any(p.is_list for p in row.inputs + row.outputs)
    ):
        return next(iter(sets.values()))
    return None


@pytest.mark.parametrize("soc", ["2201", "3510", "5102"])
def test_operators_of_one_dtype(ascir, soc):
    ascir.utils.set_platform(soc, 0, 0)
    checked = 0
    for name, row in sorted(ROWS.items()):
        members = same_rule(row, registry_of(soc))
        if members is None:
            continue
        checked += 1
        for dtype in ALL:
            ins = [dtype] * len(row.inputs)
            if dtype in members:
                assert infer(ascir, name, ins) == [dtype] * len(row.outputs)
            else:
                with pytest.raises(TypeError, match="Infer dtype failed for n %s" % name):
                    infer(ascir, name, ins)
    assert checked > (30 if soc == "2201" else 90)


def test_texts(ascir):
    with pytest.raises(TypeError) as error:
        infer(ascir, "Cast", [D["i8"]], [D["i4"]])
    assert (
        str(error.value) == "Check dtype failed for n Cast; input_dtypes: [DT_INT8], output_dytpes: [DT_INT4]"
    )
    with pytest.raises(TypeError) as error:
        infer(ascir, "Add", [D["f32"], D["f16"]])
    assert str(error.value) == (
        "Infer dtype failed for n Add; input_dtypes: [DT_FLOAT, DT_FLOAT16] is not supported now"
    )
    with pytest.raises(TypeError) as error:
        infer(ascir, "Scalar", [])
    assert str(error.value) == "Infer dtype failed for n Scalar; input_dtypes: [] is not supported now"
    for op in (ascir.ops.Abs("n"), ascir.ops.Concat("n")):
        with pytest.raises(TypeError) as error:
            op.infer_dtype()
        assert str(error.value) == "node n %s need set input before call infer dype" % op.type
    platform.restore(platform.Platform())
    with pytest.raises(TypeError, match="^Failed to get npu_arch$"):
        infer(ascir, "Abs", [0])
    for soc in ("1234", "910b"):
        ascir.utils.set_platform(soc, 0, 0)
        with pytest.raises(TypeError, match="Infer dtype failed"):
            infer(ascir, "Abs", [0])


PAIRS = {
    ("2201", "Cast"): {
        "f32": "f32 f16 i64 i32 i16 bf16",
        "f16": "f32 i32 i16 i8 u8 i4 i64",
        "i4": "f16",
        "u8": "f16 f32 i32 i16 i8 i4",
        "i8": "f16 u8",
        "i16": "f16 f32 u16",
        "i32": "f32 i64 i16 f16 u32",
        "i64": "i32",
        "bf16": "f32 i32",
        "u32": "i32",
        "u16": "i16",
        "u64": "i64",
    },
    ("5102", "Cast"): {
        "f32": "f32 f16 i64 i32 i16 bf16 i8 bool",
        "f16": "f32 i32 i16 i8 u8 i64",
        "u64": "i64",
        "u16": "i16",
        "u8": "f16 f32 i32 i16 i8 i64",
        "u32": "i32",
        "i8": "f16 u8 f32 i16",
        "i16": "f16 f32 u16 i8 u8",
        "i32": "f32 i64 i16 f16 u32",
        "i64": "i32 f32 u8 u64 f16",
        "bf16": "f32 i32",
    },
    ("2201", "LogicalNot"): {d: d for d in "f16 f32 u8 i16 i32".split()},
    ("5102", "LogicalNot"): dict(
        {d: "u8" for d in "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32".split()}, bool="bool"
    ),
    ("5102", "RoundToInt"): {"f32": "i64 i32 i16", "f16": "i16 i32 i8 u8", "bf16": "i32"},
}


@pytest.mark.parametrize("soc, name", sorted(PAIRS))
def test_pairs(ascir, soc, name):
    ascir.utils.set_platform(soc, 0, 0)
    allowed = {(D[a], D[b]) for a, bs in PAIRS[soc, name].items() for b in bs.split()}
    for source, result in itertools.product(ALL, ALL):
        if (source, result) in allowed:
            assert infer(ascir, name, [source], [result]) == [result]
        else:
            with pytest.raises(TypeError, match="Check dtype failed"):
                infer(ascir, name, [source], [result])
    for source in ALL:
        results = [b for a, b in allowed if a == source]
        if len(results) == 1:
            assert infer(ascir, name, [source]) == results
        else:
            with pytest.raises(TypeError, match="Infer dtype failed"):
                infer(ascir, name, [source])


def test_flags(ascir):
    assert infer(ascir, "Ge", [D["f32"]] * 2) == [D["u8"]]
    with pytest.raises(TypeError):
        infer(ascir, "Lt", [D["i64"]] * 2)
    with pytest.raises(TypeError):
        infer(ascir, "Ge", [D["f32"]] * 2, [D["bool"]])
    assert infer(ascir, "Select", [D["u8"], D["f16"], D["f16"]]) == [D["f16"]]
    assert infer(ascir, "MaskedFill", [D["f16"], D["u8"], D["f16"]]) == [D["f16"]]
    with pytest.raises(TypeError):
        infer(ascir, "Select", [D["f16"], D["f16"], D["f16"]])
    ascir.utils.set_platform("3510", 0, 0)
    assert infer(ascir, "Ge", [D["f32"]] * 2) == [D["bool"]]
    assert infer(ascir, "Ge", [D["f32"]] * 2, [D["u8"]]) == [D["u8"]]
    assert infer(ascir, "SignBit", [D["f32"]]) == [D["bool"]]
    assert infer(ascir, "Lt", [D["i64"]] * 2) == [D["bool"]]


def test_outputs_with_their_own_symbol(ascir):
    assert infer(ascir, "ArgMax", [D["f32"]]) == [D["i64"]]
    assert infer(ascir, "Gather", [D["f16"], D["i64"]]) == [D["f16"]]
    assert infer(ascir, "TrueDiv", [D["i32"]] * 2) == [D["f32"]]
    assert infer(ascir, "TrueDiv", [D["f16"]] * 2, [D["f16"]]) == [D["f16"]]
    for ins in (["i32", "f32"], ["i64", "i64"]):
        with pytest.raises(TypeError, match="Infer dtype failed for n TrueDiv"):
            infer(ascir, "TrueDiv", [D[d] for d in ins])
    for outs in ([], [D["i8"]]):
        with pytest.raises(TypeError):
            infer(ascir, "MatMul", [D["f16"]] * 2, outs)
    assert infer(ascir, "MatMul", [D["f16"]] * 2, [D["f32"]]) == [D["f32"]]
    ascir.utils.set_platform("5102", 0, 0)
    assert infer(ascir, "Frexp", [D["f32"]]) == [D["f32"], D["i32"]]
    with pytest.raises(TypeError, match="Check dtype failed"):
        infer(ascir, "Frexp", [D["f32"]], [D["f32"]])  # partly set
    assert infer(ascir, "LShift", [D["u8"], D["i8"]]) == [D["u8"]]
    with pytest.raises(TypeError):
        infer(ascir, "LShift", [D["u8"], D["u8"]])
    assert infer(ascir, "LegendrePolynomialP", [D["f32"], D["i8"]]) == [D["f32"]]
    with pytest.raises(TypeError):
        infer(ascir, "ArgMax", [D["f32"]])


def test_a_symbol_of_two_inputs_is_one_dtype(ascir):
    for name in ("Add", "Eq", "LogicalAnd", "BitwiseAnd", "Remainder"):
        with pytest.raises(TypeError, match="Infer dtype failed"):
            infer(ascir, name, [D["i32"], D["i16"]])


def test_lists_are_uniform(ascir, on_5102):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    data = [ops.Data("d%d" % i, graph) for i in range(2)]
    concat, output, split = ops.Concat("c"), ops.Output("o"), ops.Split("s", 2)
    concat.x, output.x, split.x = data, data, data[0]
    concat.infer_dtype(), output.infer_dtype(), split.infer_dtype()
    assert [concat.y.dtype, output.y.dtype] + [y.dtype for y in split.y] == [0, 0, 0, 0]
    split.infer_dtype()
    split.y[1].dtype = D["f16"]
    with pytest.raises(TypeError, match="^s dynamic_output should have uniform dtypes$"):
        split.infer_dtype()
    data[1].y.dtype = D["f16"]
    with pytest.raises(TypeError, match="^c dynamic_input should have uniform dtypes$"):
        concat.infer_dtype()
    with pytest.raises(TypeError, match="^o Output should have uniform dtypes$"):
        output.infer_dtype()


def test_graphs_stop_at_the_first_failure(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    data, load, bad, behind = ops.Data("d", graph), ops.Load("l"), ops.Cast("bad"), ops.Abs("behind")
    load.x, bad.x, behind.x = data, load, bad
    with pytest.raises(TypeError, match="bad Cast"):
        graph.infer_dtypes()
    assert load.y.dtype == 0 and behind.y.dtype == UNDEFINED
    bad.y.dtype = D["f16"]
    graph.infer_dtypes()
    assert behind.y.dtype == D["f16"]


def test_registered_where():
    first = {n for n, r in ROWS.items() if 1 in r.dtypes or 1 in r.pairs}
    second = {n for n, r in ROWS.items() if 2 in r.dtypes or 2 in r.pairs}
    assert second - first >= {"Split", "Square", "Softmax", "Floor", "IndirectLoad", "Unsupported"}
    assert first - second == {"ArgMax"} and first | second == set(ROWS) and len(first) == 70
