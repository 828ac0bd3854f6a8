"""Recommendation models of deepctr."""
from deepctr.feature_column import DenseFeat, SparseFeat, VarLenSparseFeat
from deepctr.models import BST, DCN, DIN, MMOE, PLE, DeepFM

from bench.suite.models.features import DENSE, EMBEDDING, LONGEST, SPARSE, VOCABULARY


def _columns():
    return ([SparseFeat("C%d" % i, VOCABULARY, embedding_dim=EMBEDDING) for i in range(SPARSE)] +
            [DenseFeat("I%d" % i, 1) for i in range(DENSE)])


def _history():
    """A user's behaviour, as DIN and BST read it."""
    columns = [SparseFeat("user", VOCABULARY, embedding_dim=EMBEDDING), DenseFeat("score", 1)]
    for name in ("item", "cate"):
        columns.append(SparseFeat(name, VOCABULARY, embedding_dim=EMBEDDING))
        past = SparseFeat("hist_" + name, VOCABULARY, embedding_dim=EMBEDDING, embedding_name=name)
        columns.append(VarLenSparseFeat(past, maxlen=LONGEST, length_name="seq_length"))
    return columns, ["item", "cate"]


def _ends(model):
    return model.inputs, model.outputs


def mmoe():
    return _ends(MMOE(_columns(), task_types=["binary", "binary"], task_names=["a", "b"]))


def ple():
    return _ends(PLE(_columns(), task_types=["binary", "binary"], task_names=["a", "b"]))


def deepfm():
    return _ends(DeepFM(_columns(), _columns()))


def dcn():
    return _ends(DCN(_columns(), _columns()))


def din():
    return _ends(DIN(*_history()))


def bst():
    return _ends(BST(*_history(), att_head_num=4))
