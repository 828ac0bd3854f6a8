"""TensorFlow ops of the fused families that have no row, and those that train: what stands in the way, for
explain and docs/ops.md.

An op is here or in the table, never in both; an op of another kind (matrix products, strings) is in neither.
"""

from typing import Dict, NamedTuple, Tuple


class LeftOps(NamedTuple):
    """names: TF op types. why: a sentence."""

    names: Tuple[str, ...]
    why: str


LEFT: Tuple[LeftOps, ...] = (
    LeftOps(
        (
            "BesselI0e",
            "BesselI1e",
            "Betainc",
            "Digamma",
            "Igamma",
            "IgammaGradA",
            "Igammac",
            "Lgamma",
            "Polygamma",
            "Zeta",
        ),
        "A special function without a form of its own in either target; rare in models.",
    ),
    LeftOps(
        ("Angle", "Complex", "ComplexAbs", "Conj", "ConjugateTranspose", "Imag", "Real"),
        "AscIR has no complex numbers.",
    ),
    LeftOps(("NextAfter", "PopulationCount"), "It works on the bits of a number; rare in models."),
    LeftOps(("Bitcast",), "It may change the number of dims, and has no lowering."),
    LeftOps(
        ("CheckNumerics",), "It must fail by itself, with its own message, where its input is not finite."
    ),
    LeftOps(("Cumsum", "Cumprod"), "A scan hands a value from element to element; AscIR's loops do not."),
    LeftOps(
        (
            "Bincount",
            "ScatterNd",
            "SegmentMax",
            "SegmentMean",
            "SegmentMin",
            "SegmentProd",
            "SegmentSum",
            "SparseSegmentSum",
            "StridedSliceGrad",
            "TensorScatterUpdate",
            "UnsortedSegmentMax",
            "UnsortedSegmentMin",
            "UnsortedSegmentProd",
            "UnsortedSegmentSum",
        ),
        "It writes where values or a larger shape say; AscIR's stores go where the loops are.",
    ),
    LeftOps(("TopKV2", "Where"), "The order, or the number, of its results depends on values."),
    LeftOps(
        ("EuclideanNorm", "MirrorPadGrad", "TileGrad"), "It has no lowering; models hold its parts instead."
    ),
    LeftOps(
        ("SparseSoftmaxCrossEntropyWithLogits",),
        "Its gradient compares labels with a counter along the row, and a label out of range is an error; "
        "AscIR has no counter.",
    ),
    LeftOps(
        ("BatchToSpaceND", "DepthToSpace", "SpaceToBatchND", "SpaceToDepth"),
        "A transpose between two views, but it has no lowering.",
    ),
    LeftOps(("GatherNd", "ResourceGatherNd"), "A gather by several indexes at once has no form in AscIR."),
    LeftOps(("MatrixDiag", "OneHot"), "It compares with a counter along the result; AscIR has no counter."),
    LeftOps(("Reverse", "ReverseV2", "ReverseSequence"), "AscIR's loads step forward only."),
    LeftOps(
        ("IdentityN", "ParallelConcat"), "It takes or gives several tensors at once and has no lowering."
    ),
    LeftOps(
        ("ConcatOffset", "InvertPermutation"), "Shape arithmetic of gradients, which TensorFlow folds itself."
    ),
    LeftOps(
        tuple(
            prefix + name
            for prefix in ("Apply", "ResourceApply")
            for name in (
                "AdaMax Adadelta Adagrad AdagradDA Adam AddSign CenteredRMSProp Ftrl FtrlV2 GradientDescent "
                "Momentum PowerSign ProximalAdagrad ProximalGradientDescent RMSProp".split()
            )
        )
        + ("ResourceApplyAdamWithAmsgrad", "ResourceApplyKerasMomentum"),
        "It changes variables in place, under their locks (use_locking) and when control edges say so, while "
        "other steps may read them. A fused op gets its inputs before it runs and gives new tensors, so it "
        "could write over what another step wrote in between. What computes the gradient in front of it is "
        "fused.",
    ),
    LeftOps(
        (
            "Assign",
            "AssignAdd",
            "AssignAddVariableOp",
            "AssignSub",
            "AssignSubVariableOp",
            "AssignVariableOp",
            "ReadVariableOp",
            "ResourceScatterAdd",
            "ResourceScatterSub",
            "ResourceScatterUpdate",
            "ScatterAdd",
            "ScatterSub",
            "ScatterUpdate",
            "VarHandleOp",
            "Variable",
            "VariableV2",
        ),
        "It reads or changes a variable at a moment that the graph's order fixes; fused ops read what it "
        "gives and compute what it stores.",
    ),
    LeftOps(
        ("Range", "Rank", "Shape", "ShapeN", "Size"),
        "Shape arithmetic: where fused ops read it, it is known without being computed.",
    ),
)

_WHY: Dict[str, str] = {name: row.why for row in LEFT for name in row.names}


def why_left(op: str) -> str:
    """Why there is no row for the TF op type, or '' where nothing is said of it."""
    return _WHY.get(op, "")
