"""Precision modes: which ops compute in 16 bits where TF has float32, i.e. which Casts GE would insert.

The modes of the NPU route (config.precision_mode_for(target) says which is in force):
    force_fp16              every float32 op that can compute in float16 does
    allow_fp32_to_fp16      float32 stays where the op has it; an op without float32 but with float16 computes
                            in that
    must_keep_origin_dtype  nothing changes; nor under force_fp32 and cube_fp16in_fp32out, which speak of
                            matrix ops only
    allow_mix_precision     by lists: WHITE ops compute in float16 (.._bf16: bfloat16), BLACK ops keep
                            float32, all others are gray: they follow what produces their inputs

The Casts exist in fused regions only (ir/loop_ir.py: narrow, widen): TF's own ops around a region keep
float32. Cast, views and fills have no precision of their own and are never changed.
"""

from typing import Callable, List, NamedTuple, Optional

from tf_autofuse.ir.dtypes import BFLOAT16, DType, FLOAT16, FLOAT32
from tf_autofuse.lowering.graph_view import GraphView

_MIX = {
    "allow_mix_precision": FLOAT16,
    "allow_mix_precision_fp16": FLOAT16,
    "allow_mix_precision_bf16": BFLOAT16,
}

#: Matrix work: what the cube unit computes in float16 anyway.
WHITE = frozenset(
    (
        "MatMul",
        "BatchMatMul",
        "BatchMatMulV2",
        "Conv2D",
        "Conv2DBackpropInput",
        "Conv2DBackpropFilter",
        "DepthwiseConv2dNative",
        "Conv3D",
    )
)
#: What loses too much in float16: losses, statistics, and functions with a wide range of values.
BLACK = frozenset(
    (
        "Softmax",
        "LogSoftmax",
        "SoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyWithLogits",
        "L2Loss",
        "FusedBatchNormV2",
        "FusedBatchNormV3",
        "FusedBatchNormGradV2",
        "FusedBatchNormGradV3",
        "Mean",
        "Sum",
        "Prod",
        "Pow",
        "Xlogy",
        "Xdivy",
    )
)


def spreads(mode: str) -> bool:
    """Whether what a mode makes of an op depends on what computes its inputs."""
    return mode in _MIX


class LowPrecision(NamedTuple):
    """dtype: float16 or bfloat16; nodes: per node whether it computes its float32 tensors in that."""

    dtype: DType
    nodes: List[bool]


def low_precision(
    view: GraphView, mode: str, neutral: Callable[[str], bool], supports: Callable[[str, DType], bool]
) -> Optional[LowPrecision]:
    """What the mode changes; None where it changes nothing.

    neutral(op): the op has no precision of its own; supports(op, dtype): it can be fused with that dtype.
    """
    if mode in _MIX:
        return LowPrecision(_MIX[mode], _mixed(view, neutral, lambda op: supports(op, _MIX[mode])))
    if mode == "force_fp16":
        lowered = {op for op in set(view.ops) if not neutral(op) and supports(op, FLOAT16)}
    elif mode == "allow_fp32_to_fp16":
        lowered = {
            op
            for op in set(view.ops)
            if not neutral(op) and supports(op, FLOAT16) and not supports(op, FLOAT32)
        }
    else:
        return None
    if not lowered:
        return None
    return LowPrecision(
        FLOAT16, [op in lowered and _has_float32(view, node) for node, op in enumerate(view.ops)]
    )


def _has_float32(view: GraphView, node: int) -> bool:
    return FLOAT32.tf in view.in_dtypes[node] or FLOAT32.tf in view.out_dtypes[node]


def _mixed(view: GraphView, neutral, supports) -> List[bool]:
    """Gray ops follow: 16 bits where a float32 input comes from what computes in 16 bits, through neutral ops
    too."""
    carries = [False] * len(view)  # whether the node's float32 outputs would have 16 bits on the NPU
    result = [False] * len(view)
    can = {op: not neutral(op) and supports(op) for op in set(view.ops)}
    for node, op in enumerate(view.ops):
        if op in BLACK or op == "Cast" or not _has_float32(view, node):
            continue
        follows = op in WHITE or any(
            carries[source] and view.out_dtypes[source][port] == FLOAT32.tf
            for source, port in view.inputs[node]
        )
        result[node] = follows and can[op]
        carries[node] = follows and (can[op] or neutral(op) or op in WHITE)
    return result
