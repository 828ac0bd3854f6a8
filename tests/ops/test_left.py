"""Every op of TF 1.15's families is in the op table or has a reason why not."""
import pytest

from tf_autofuse.ops.table import TF_OPS
from tf_autofuse.ops.tf_left import LEFT, why_left

CWISE = """
    Abs Acos Acosh Add AddN AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e
    Betainc BiasAdd BiasAddGrad BiasAddV1 Bitcast BitwiseAnd BitwiseOr BitwiseXor BroadcastTo Cast Ceil
    CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div DivNoNan Elu EluGrad Equal Erf
    Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Igamma IgammaGradA Igammac Imag Inv InvGrad
    Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd
    LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Neg NextAfter NotEqual OnesLike Polygamma
    PopulationCount Pow Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad RightShift Rint
    Round Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Softplus
    SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad
    TruncateDiv TruncateMod Xdivy Xlogy ZerosLike Zeta
"""
REDUCTIONS = """
    All Any ArgMax ArgMin Bincount Cumprod Cumsum EuclideanNorm FusedBatchNorm FusedBatchNormV2
    FusedBatchNormV3 FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 L2Loss LogSoftmax Max Mean
    Min Prod SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum Softmax SoftmaxCrossEntropyWithLogits
    SparseSegmentSum SparseSoftmaxCrossEntropyWithLogits Sum TopKV2 UnsortedSegmentMax UnsortedSegmentMin
    UnsortedSegmentProd UnsortedSegmentSum
"""
LAYOUT = """
    BatchToSpaceND Concat ConcatOffset ConcatV2 ConjugateTranspose DepthToSpace ExpandDims Fill Gather
    GatherNd GatherV2 Identity IdentityN InvertPermutation MatrixDiag MirrorPad MirrorPadGrad OneHot Pack
    Pad PadV2 ParallelConcat Range Rank Reshape ResourceGather ResourceGatherNd Reverse ReverseSequence
    ReverseV2 ScatterNd Shape ShapeN Size Slice SpaceToBatchND SpaceToDepth Split SplitV Squeeze
    StridedSlice StridedSliceGrad TensorScatterUpdate Tile TileGrad Transpose Unpack Where
"""


@pytest.mark.parametrize("family", [CWISE, REDUCTIONS, LAYOUT], ids=["cwise", "reductions", "layout"])
def test_no_op_is_missing_without_a_reason(family):
    assert [n for n in family.split() if n not in TF_OPS and not why_left(n)] == []


def test_an_op_has_a_row_or_a_reason_never_both():
    names = [name for row in LEFT for name in row.names]
    assert len(names) == len(set(names))
    assert [name for name in names if name in TF_OPS] == []
    assert all(row.why.endswith(".") for row in LEFT)
    assert why_left("MatMul") == ""


@pytest.mark.tensorflow
def test_the_ops_exist():
    from tensorflow.python.framework import op_def_registry
    import tensorflow  # noqa: F401  fills the registry
    known = op_def_registry.get_registered_ops()
    names = [name for row in LEFT for name in row.names]
    assert [name for name in names + " ".join((CWISE, REDUCTIONS, LAYOUT)).split() if name not in known] == []
