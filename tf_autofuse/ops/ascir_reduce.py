"""AscIR reductions: many elements to one, along axes that the result keeps with extent 1.

On entry of `evaluate`: one numpy array and attrs axes (positions of its dims); on exit an array of the
result's dtype with extent 1 there. The rules for special values are those of TF 1.15's CPU kernels (asked,
not read):

    Sum Prod      integers wrap around; floats: no order is promised (here: float32 sums in float64, rounded
    once) Max Min       start at -inf (inf), or the lowest (highest) integer, and take an element that is
                  greater (less): so NaN is skipped, and only NaNs give -inf (inf)
    ArgMax ArgMin index 0 and the lowest (highest) finite number to start with, the first greater (less)
                  element counts: NaN is skipped, and where nothing is greater the index is 0
    All Any       bool
    no element    the start value; ArgMax of nothing is an error of TF's, which lowering keeps out with a
    guard one element   that element as it is: a NaN stays NaN in Max, -0.0 stays -0.0 in Sum (TF copies then)
"""
import numpy as np

from tf_autofuse.ir.dtypes import BOOL, DType, FLOAT16, FLOAT32, INT16, INT32, INT8, UINT8
from tf_autofuse.ops import host_forms as host
from tf_autofuse.ops.forms import for_dtypes
from tf_autofuse.ops.schema import AscOp

#: kReduceTmpBytes and kArgExtremeTmpBytes of the device helpers: enough for any sizes.
REDUCE_SCRATCH = 16896
ARG_SCRATCH = 21248


def start_value(asc_type: str, dtype: DType):
    """What the accumulation of a reduction begins with, as a Python number or bool; for ArgMax and ArgMin,
    whose input has `dtype`, the value that goes with index 0."""
    if asc_type in ("All", "Any"):
        return asc_type == "All"
    if asc_type in ("Sum", "Prod"):
        value = int(asc_type == "Prod")
        return float(value) if dtype.is_floating else value
    lowest = asc_type in ("Max", "ArgMax")
    if dtype is BOOL:
        raise ValueError("%s of bool" % asc_type)
    if not dtype.is_floating:
        limits = np.iinfo(dtype.numpy)
        return int(limits.min if lowest else limits.max)
    if asc_type in ("Max", "Min"):
        return -np.inf if lowest else np.inf
    limits = np.finfo(np.float32 if dtype.bytes == 2 else dtype.numpy)
    return float(limits.min if lowest else limits.max)


def _axes(attrs):
    return tuple(attrs["axes"])


def _one_element(x, axes) -> bool:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64)) == 1


def _sum(inputs, attrs, dtype):
    (x,) = inputs
    if _one_element(x, _axes(attrs)):
        return x
    wide = np.float64 if dtype.is_floating else dtype.numpy
    return np.add.reduce(x, axis=_axes(attrs), dtype=wide, keepdims=True, initial=0).astype(dtype.numpy)


def _prod(inputs, attrs, dtype):
    (x,) = inputs
    return np.multiply.reduce(x, axis=_axes(attrs), dtype=dtype.numpy, keepdims=True, initial=1)


def _extreme(asc_type, step):
    def evaluate(inputs, attrs, dtype):
        (x,) = inputs
        if _one_element(x, _axes(attrs)):
            return x
        start = dtype.numpy(start_value(asc_type, dtype))
        x = np.where(x != x, start, x) if dtype.is_floating else x
        return step.reduce(x, axis=_axes(attrs), keepdims=True, initial=start)

    return evaluate


def _logical(step, start):
    def evaluate(inputs, attrs, _dtype):
        return step.reduce(inputs[0], axis=_axes(attrs), keepdims=True, initial=start)

    return evaluate


def _arg_extreme(asc_type, better, arg):
    """The index counts along the reduced axes as one row-major axis."""

    def evaluate(inputs, attrs, dtype):
        (x,) = inputs
        axes = _axes(attrs)
        start = x.dtype.type(_finite_start(asc_type, x.dtype))
        kept = [i for i in range(x.ndim) if i not in axes]
        count = int(np.prod([x.shape[i] for i in axes]))
        rows = np.transpose(x, kept + list(axes)).reshape([x.shape[i] for i in kept] + [count])
        index = arg(np.where(better(rows, start), rows, start), axis=-1)
        return index.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]).astype(dtype.numpy)

    return evaluate


def _finite_start(asc_type, dtype):
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return limits.min if asc_type == "ArgMax" else limits.max


#: Combining steps in C: {0} is the accumulator and {1} the element. Of ArgMax and ArgMin whether the element
#: replaces the accumulator.
_HOST = {
    "Sum": host.each(host.NUMBERS, host.operator("+")),
    "Prod": host.each(host.NUMBERS, host.operator("*")),
    "Max": host.each(host.NUMBERS, lambda d: "({0} < {1} ? {1} : {0})"),
    "Min": host.each(host.NUMBERS, lambda d: "({1} < {0} ? {1} : {0})"),
    "All": {BOOL: "({0} & {1})"},
    "Any": {BOOL: "({0} | {1})"},
    "ArgMax": host.each(host.NUMBERS, lambda d: "({0} < {1})"),
    "ArgMin": host.each(host.NUMBERS, lambda d: "({1} < {0})"),
}
_SUMS = (FLOAT32, INT32, INT16)
_EXTREMES = (FLOAT32, FLOAT16, INT32, INT16, INT8, UINT8)


def _calls(helper, fold):
    """Device helpers for a tile whose rows lie {stride} elements apart: 'last' folds each of {rows} rows of
    {cols} elements, 'first' folds the {rows} elements of each column."""
    return {where.lower(): "autofuse::%s%s<autofuse::Fold::k%s>({dst}, {0}, {tmp}, {rows}, {cols}, {stride});"
            % (helper, where, fold) for where in ("Last", "First")}


def _fold(asc_type, dtypes, evaluate, note, cost, result="same"):
    return AscOp(asc_type, 1, result, for_dtypes(dtypes, _calls("Reduce", asc_type)), evaluate,
                 tmp_bytes=lambda item_bytes, count: REDUCE_SCRATCH, reduces=True, header="reduce.h",
                 cost=((cost, 1),), note=note, host=_HOST[asc_type])


def _arg(asc_type, evaluate, note):
    fold = asc_type[len("Arg"):]
    return AscOp(asc_type, 1, "attr", for_dtypes((FLOAT32, INT32), _calls("ArgExtreme", fold)), evaluate,
                 tmp_bytes=lambda item_bytes, count: ARG_SCRATCH, reduces=True, header="arg.h",
                 cost=((fold, 2), ("CompareScalarEQ", 1), ("Select", 1)), note=note, host=_HOST[asc_type])


ROWS = (
    _fold("Sum", _SUMS, _sum, "the sum; integers wrap around", "Add"),
    _fold("Prod", _SUMS, _prod, "the product; integers wrap around", "Mul"),
    _fold("Max", _EXTREMES, _extreme("Max", np.maximum), "the greatest element; NaN is skipped", "Max"),
    _fold("Min", _EXTREMES, _extreme("Min", np.minimum), "the least element; NaN is skipped", "Min"),
    _fold("All", (BOOL,), _logical(np.logical_and, True), "whether all are true", "Min", "bool"),
    _fold("Any", (BOOL,), _logical(np.logical_or, False), "whether one is true", "Max", "bool"),
    _arg("ArgMax", _arg_extreme("ArgMax", np.greater, np.argmax),
         "the row-major index of the first greatest element over the reduced axes; NaN is skipped"),
    _arg("ArgMin", _arg_extreme("ArgMin", np.less, np.argmin),
         "the row-major index of the first least element over the reduced axes; NaN is skipped"),
)
