"""The operators that the AscIR API exposes: one line of a table each, and the dtype rules behind them.

Columns: names | inputs (name:symbol, [] = a list) | outputs | attributes | compute type | dtypes on 2201 |
dtypes on 3510 and 5102. `-` in a dtype column: the operator is not registered there; `=`: as on 2201. A
symbol stands for one dtype of its set; `pairs:NAME` is a table of (input, output) pairs. Lines that end in
a backslash go on.

Nothing here says what an operator computes (meanings.py does): this is only what one may build and infer.
"""

from typing import Dict, FrozenSet, NamedTuple, Optional, Tuple

from tf_autofuse.ascir_api import dtypes

_TABLE = r"""
Data ScalarData | - | y:T | index:int | unknown | T: ALL11 | T: ALL12
Scalar | - | y:T | value:str | unknown | T: ALL11 | T: ALL12
IndexExpr | - | y:T | expr:int | unknown | T: INT8 f16 f32 | =
Output | x:T | y:T | index:int | unknown | T: ALL11 | T: ALL12
Workspace | x:T | y:T | - | unknown | T: ALL11 | T: ALL12
Load | x:T | y:T | offset:SizeExpr | load | T: i8 u8 i16 u16 i32 u32 i64 f16 bf16 f32 | T: ALL12
Store | x:T | y:T | offset:SizeExpr | store | T: i8 u8 i16 u16 i32 u32 i64 f16 bf16 f32 | T: ALL12
Broadcast | x:T | y:T | - | broadcast | T: i8 u8 i16 u16 i32 u32 u64 f16 f32 | T: INT8 f16 f32 bool
RemovePad | x:T | y:T | - | elewise | T: i16 u16 i32 u32 f16 bf16 f32 | =
Pad | x:T | y:T | - | elewise | T: i16 u16 i32 u32 f16 f32 | =
Nop | x:T | y:T | - | elewise | T: i8 u8 i16 u16 i32 u32 u64 f16 f32 | =
Cast | x:T1 | y:T2 | - | elewise | pairs:Cast1 | pairs:Cast2
Abs | x:T | y:T | - | elewise | T: i32 f16 f32 | T: i8 u8 i16 i32 i64 f16 bf16 f32
Exp Ln Sqrt Rsqrt Erf Tanh Sigmoid | x:T | y:T | - | elewise | T: f16 f32 | T: f16 bf16 f32
ArgMax | x:T | y:U | - | reduce | T: i32 f32; U: i64 | -
Reciprocal | x:T | y:T | - | elewise | T: f16 f32 | T: i64 u64 f16 bf16 f32
Sign | x:T | y:T | - | elewise | T: i32 f16 f32 | T: u8 i32 i64 f16 bf16 f32
Isnan IsFinite IsInf | x:T1 | y:T2 | - | elewise | T1: f16 f32; T2: u8 | T1: f16 bf16 f32; T2: u8 bool
Relu | x:T | y:T | - | elewise | T: i32 f16 f32 | T: u8 i32 i64 f16 f32
Neg | x:T | y:T | - | elewise | T: i16 i32 f16 f32 | T: i8 i16 i32 i64 f16 bf16 f32
LogicalNot | x:T1 | y:T2 | - | elewise | pairs:Not1 | pairs:Not2
Max Min | x:T | y:T | - | reduce | T: f16 f32 | T: i8 u8 i16 i32 i64 f16 bf16 f32
Sum | x:T | y:T | - | reduce | T: i32 f32 | T: i8 i16 i32 i64 f16 bf16 f32
Mean Prod Any All | x:T | y:T | - | reduce | T: f32 | =
Add Sub Minimum Maximum | x1:T x2:T | y:T | - | elewise | T: i16 i32 f16 f32 | T: ALL11
Div | x1:T x2:T | y:T | - | elewise | T: f16 f32 | =
Mul | x1:T x2:T | y:T | - | elewise | T: i16 i32 f16 f32 | T: i8 u8 i16 i32 u32 i64 u64 f16 bf16 f32
TrueDiv | x1:T1 x2:T1 | y:T2 | - | elewise | pairs:Div1 | pairs:Div2
Remainder | x1:T x2:T | y:T | - | elewise | T: i32 f32 | T: i32 f16 bf16 f32
LogicalOr LogicalAnd | x1:T1 x2:T1 | y:T2 | - | elewise |\
    T1: u8 i16 i32 f16 f32; T2: u8 | T1: ALL12; T2: u8 bool
Pow | x1:T x2:T | y:T | - | elewise | T: i32 f16 f32 | T: i8 u8 i16 u16 i32 u32 f16 bf16 f32
ClipByValue | x1:T x2:T x3:T | y:T | - | elewise | T: f16 f32 | T: ALL11
Ge Eq Ne Gt Le | x1:T1 x2:T1 | y:T2 | - | elewise | T1: i32 i64 f16 f32; T2: u8 | T1: ALL11; T2: u8 bool
Lt | x1:T1 x2:T1 | y:T2 | - | elewise | T1: i32 f16 f32; T2: u8 | T1: ALL11; T2: u8 bool
Concat | x[]:T | y:T | - | concat | T: i8 u8 i16 u16 i32 u32 u64 f16 bf16 f32 | T: ALL11
Select | x1:T1 x2:T2 x3:T2 | y:T2 | - | elewise |\
    T1: u8; T2: i16 i32 i64 f16 f32 | T1: u8 bool; T2: i16 i32 i64 f16 f32
Where | x1:T1 x2:T2 x3:T2 | y:T2 | - | elewise |\
    T1: u8; T2: i16 i32 i64 f16 f32 | T1: u8 bool; T2: ALL11
MaskedFill | x:T2 mask:T1 value:T2 | y:T2 | - | elewise | T1: u8; T2: f16 f32 | T1: u8; T2: f16 bf16 f32
LeakyRelu | x:T | y:T | negative_slope:float | elewise | T: f16 f32 | =
BitwiseAnd | x1:T x2:T | y:T | - | elewise | T: u8 i16 u16 i32 | T: INT8
Gather | x1:T1 x2:T2 | y:T1 | axis:int | gather | T1: i16 u16 i32 u32 f16 bf16 f32; T2: i32 i64 | =
Transpose | x:T | y:T | - | transpose |\
    T: i16 u16 i32 u32 f16 f32 | T: i16 u16 i32 u32 f16 bf16 f32 bool
FloorDiv | x1:T x2:T | y:T | - | elewise | T: f16 f32 | T: INT8 f16 f32
Gelu | x:T | y:T | - | elewise | T: f16 f32 | =
Axpy | x1:T x2:T | y:T | alpha:float | elewise | T: f16 f32 | T: i64 u64 f16 bf16 f32
MatMul | x1:T1 x2:T1 | y:T2 | @matmul | cube | T1: f16 bf16 f32; T2: f16 bf16 f32 | =
MatMulBias | x1:T1 x2:T1 bias:T2 | y:T2 | @matmul | cube | T1: f16 bf16 f32; T2: f16 bf16 f32 | =
BatchMatMul | x1:T1 x2:T1 | y:T2 | @batch_matmul | cube | T1: f16 bf16 f32; T2: f16 bf16 f32 | =
BatchMatMulBias | x1:T1 x2:T1 bias:T2 | y:T2 | @batch_matmul | cube |\
    T1: f16 bf16 f32; T2: f16 bf16 f32 | =
Split | x:T | y[]:T | - | split | - | T: ALL11 f64 bool c128 c64 qi16 qi32 qi8 qu16 qu8
Square | x:T | y:T | - | elewise | - | T: u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32
RoundToInt TruncToInt | x:T1 | y:T2 | - | elewise | - | pairs:Round
Xor | x1:T x2:T | y:T | - | elewise | - | T: u8 i16 u16
Trunc Tan Sinh Round Exp2 Floor Expm Log2 Ceil Cos Acos Cosh Digamma Erfc Erfcx Lgamma Log10 Log1p \
Sin Acosh Asin Asinh Atan Atanh | x:T | y:T | - | elewise | - | T: f16 bf16 f32
TruncDiv Atan2 CopySign Fmod Hypot | x1:T x2:T | y:T | - | elewise | - | T: f16 bf16 f32
ModifiedBesselI0 ModifiedBesselI1 ModifiedBesselK0 ModifiedBesselK1 BesselJ0 BesselJ1 BesselY0 \
BesselY1 ScaledModifiedBesselK0 ScaledModifiedBesselK1 SphericalBesselJ0 Ndtr Ndtri AiryAi Erfinv \
    | x:T | y:T | - | elewise | - | T: f32
SignBit | x:T | y:U | - | elewise | - | T: i32 f32; U: u8 bool
Frexp | x:T | mantissa:T exponent:U | - | elewise | - | T: f32; U: i32
Igamma Igammac Zeta | x1:T x2:T | y:T | - | elewise | - | T: f32
ShiftedChebyshevPolynomialT ShiftedChebyshevPolynomialU ShiftedChebyshevPolynomialV \
ShiftedChebyshevPolynomialW | x:T | y:T | n:int | elewise | - | T: f32
LaguerrePolynomialL LegendrePolynomialP | x:T n:U | y:T | - | elewise | - | T: f32; U: INT8
Fma | x1:T x2:T x3:T | y:T | - | elewise | - | T: i8 u8 i16 f16 bf16 f32
LShift RShift | x1:T1 x2:T2 | y:T1 | - | elewise | - | pairs:Shift
Mod | x1:T x2:T | y:T | - | elewise | - | T: i8 u8 i16 f16 bf16 f32
BitwiseNot | x:T | y:T | - | elewise | - | T: INT8
BitwiseOr BitwiseXor | x1:T x2:T | y:T | - | elewise | - | T: INT8
Ceil2Int FloorToInt | x:T1 | y:T2 | - | elewise | - | T1: f16 bf16 f32; T2: i32
IndirectLoad | x1:T1 x2:T2 | y:T1 |\
    axis:int negative_index_support:bool need_check_bound:bool max:int | load |\
    - | T1: i16 u16 i32 u32 f16 bf16 f32; T2: i32 i64
LogicalXor | x1:T1 x2:T1 | y:T2 | - | elewise | - | T1: ALL12; T2: u8 bool
Softmax | x:T | y:T | - | reduce | - | T: i8 u8 i16 i32 i64 f16 bf16 f32
Unsupported | - | y:T | error_msg:str | unknown | - | T: f32
"""

_ATTRIBUTES = {
    "@matmul": "offset_x:int transpose_x1:int transpose_x2:int has_relu:int enable_hf32:int",
    "@batch_matmul": "offset_x:int has_relu:int enable_hf32:int adj_x1:int adj_x2:int",
}

_INTEGERS = "i8 u8 i16 u16 i32 u32 i64 u64"
_SETS = {"INT8": _INTEGERS, "ALL11": _INTEGERS + " f16 bf16 f32", "ALL12": _INTEGERS + " f16 bf16 f32 bool"}

#: input dtype > output dtypes, first the ones of 2201 (1), then those of 3510 and 5102 (2).
_PAIRS = {
    "Cast1": """f32>f32,f16,i64,i32,i16,bf16 f16>f32,i32,i16,i8,u8,i4,i64 i4>f16 u8>f16,f32,i32,i16,i8,i4
        i8>f16,u8 i16>f16,f32,u16 i32>f32,i64,i16,f16,u32 i64>i32 bf16>f32,i32 u32>i32 u16>i16 u64>i64""",
    "Cast2": """f32>f32,f16,i64,i32,i16,bf16,i8,bool f16>f32,i32,i16,i8,u8,i64 u64>i64 u16>i16
        u8>f16,f32,i32,i16,i8,i64 u32>i32 i8>f16,u8,f32,i16 i16>f16,f32,u16,i8,u8 i32>f32,i64,i16,f16,u32
        i64>i32,f32,u8,u64,f16 bf16>f32,i32""",
    "Not1": "f16>f16 f32>f32 u8>u8 i16>i16 i32>i32",
    "Not2": "i8>u8 u8>u8 i16>u8 u16>u8 i32>u8 u32>u8 i64>u8 u64>u8 f16>u8 bf16>u8 f32>u8 bool>bool",
    "Div1": "f16>f16 f32>f32 i32>f32",
    "Div2": "f16>f16 f32>f32 bf16>bf16",
    "Round": "f32>i64,i32,i16 f16>i16,i32,i8,u8 bf16>i32",
}
#: A shift takes two integers of one width, the second one signed; the result is like the first.
_SHIFTS = "i8,i8 i16,i16 i32,i32 i64,i64 u8,i8 u16,i16 u32,i32 u64,i64"

V1, V2 = ("2201",), ("3510", "5102")


class Port(NamedTuple):
    """An input or output; symbol: its dtype symbol; is_list: takes or gives any number of tensors."""

    name: str
    symbol: str
    is_list: bool


class Row(NamedTuple):
    """One operator. attributes: (name, type) pairs, type int, float, bool, str or SizeExpr. dtypes and pairs:
    per registry (1 or 2): the dtypes of each symbol, or the (input dtypes, output dtype) pairs; both absent
    where the operator is not registered."""

    name: str
    inputs: Tuple[Port, ...]
    outputs: Tuple[Port, ...]
    attributes: Tuple[Tuple[str, str], ...]
    compute: str
    dtypes: Dict[int, Dict[str, FrozenSet[int]]]
    pairs: Dict[int, FrozenSet[Tuple[Tuple[int, ...], int]]]

    @property
    def is_start(self) -> bool:
        return not self.inputs


def registry_of(platform: Optional[str]) -> int:
    """1 or 2; 0 for a platform without registry."""
    return 1 if platform in V1 else 2 if platform in V2 else 0


def _ports(text: str) -> Tuple[Port, ...]:
    ports = []
    for word in text.split() if text != "-" else ():
        name, symbol = word.split(":")
        ports.append(Port(name.replace("[]", ""), symbol, name.endswith("[]")))
    return tuple(ports)


def _pair_set(name: str) -> FrozenSet[Tuple[Tuple[int, ...], int]]:
    if name == "Shift":
        shifts = [tuple(dtypes.BY_SHORT[d] for d in pair.split(",")) for pair in _SHIFTS.split()]
        return frozenset((pair, pair[0]) for pair in shifts)
    found = set()
    for entry in _PAIRS[name].split():
        source, results = entry.split(">")
        found |= {((dtypes.BY_SHORT[source],), dtypes.BY_SHORT[r]) for r in results.split(",")}
    return frozenset(found)


def _symbol_sets(text: str) -> Dict[str, FrozenSet[int]]:
    sets = {}
    for part in text.split(";"):
        symbol, words = part.split(":")
        members = " ".join(_SETS.get(w, w) for w in words.split()).split()
        sets[symbol.strip()] = frozenset(dtypes.BY_SHORT[m] for m in members)
    return sets


def _rows() -> Dict[str, Row]:
    rows = {}
    for line in _TABLE.replace("\\\n", " ").strip().split("\n"):
        names, inputs, outputs, attributes, compute, first, second = [c.strip() for c in line.split("|")]
        sets, pairs = {}, {}
        for registry, text in ((1, first), (2, first if second == "=" else second)):
            if text.startswith("pairs:"):
                pairs[registry] = _pair_set(text[len("pairs:") :])
            elif text != "-":
                sets[registry] = _symbol_sets(text)
        words = _ATTRIBUTES.get(attributes, attributes)
        attrs = tuple(tuple(w.split(":")) for w in words.split() if w != "-")
        for name in names.split():
            rows[name] = Row(name, _ports(inputs), _ports(outputs), attrs, compute, sets, pairs)
    return rows


ROWS: Dict[str, Row] = _rows()
