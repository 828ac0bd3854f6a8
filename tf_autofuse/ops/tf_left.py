"""TensorFlow ops of the fused families that have no row: what stands in the way, for explain and docs/ops.md.

An op is here or in the table, never in both; an op of another kind (matrix products, variables, strings) is
in neither.
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
        "It picks one element a row by its label and gives the gradient too; it has no lowering.",
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
        ("Range", "Rank", "Shape", "ShapeN", "Size"),
        "Shape arithmetic: where fused ops read it, it is known without being computed.",
    ),
)

_WHY: Dict[str, str] = {name: row.why for row in LEFT for name in row.names}


def why_left(op: str) -> str:
    """Why there is no row for the TF op type, or '' where nothing is said of it."""
    return _WHY.get(op, "")
