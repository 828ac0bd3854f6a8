"""The models of the suite: frozen inference graphs with random weights, their feeds and TensorFlow's own
results.

`python -m bench.suite.models FOLDER MODEL BATCH...` makes them in a process of its own; workers load them
from the folder that the environment variable AUTOFUSE_BENCH_MODELS names.
"""
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
SPARSE, DENSE, VOCABULARY, EMBEDDING = 26, 13, 1000, 16
FOLDER = "AUTOFUSE_BENCH_MODELS"


def _columns():
    """Criteo-like features: 26 sparse ones and 13 numbers."""
    from deepctr.feature_column import DenseFeat, SparseFeat
    return ([SparseFeat("C%d" % i, VOCABULARY, embedding_dim=EMBEDDING) for i in range(SPARSE)] +
            [DenseFeat("I%d" % i, 1) for i in range(DENSE)])


def _history(length=50):
    """A user's behaviour, as DIN and BST read it."""
    from deepctr.feature_column import DenseFeat, SparseFeat, VarLenSparseFeat
    columns = [SparseFeat("user", VOCABULARY, embedding_dim=EMBEDDING), DenseFeat("score", 1)]
    for name in ("item", "cate"):
        columns.append(SparseFeat(name, VOCABULARY, embedding_dim=EMBEDDING))
        past = SparseFeat("hist_" + name, VOCABULARY, embedding_dim=EMBEDDING, embedding_name=name)
        columns.append(VarLenSparseFeat(past, maxlen=length, length_name="seq_length"))
    return columns, ["item", "cate"]


def mmoe():
    from deepctr.models import MMOE
    return MMOE(_columns(), task_types=["binary", "binary"], task_names=["a", "b"])


def deepfm():
    from deepctr.models import DeepFM
    return DeepFM(_columns(), _columns())


def din():
    from deepctr.models import DIN
    return DIN(*_history())


def bst():
    from deepctr.models import BST
    return BST(*_history(), att_head_num=4)


def resnet50():
    return tf.keras.applications.ResNet50(weights=None)


def bert_layer(length=128, width=768, heads=12):
    """One encoder layer, written out of basic ops as the published code does it."""
    x = v1.placeholder(tf.float32, [None, length, width], name="hidden")
    generator = np.random.RandomState(3)

    def dense(value, rows, cols):
        weights = tf.constant((generator.randn(rows, cols) / np.sqrt(rows)).astype(np.float32))
        flat = tf.matmul(tf.reshape(value, [-1, rows]), weights)
        return tf.nn.bias_add(flat, tf.constant(generator.randn(cols).astype(np.float32) * 0.02))

    def norm(value):
        mean, variance = tf.nn.moments(value, [-1], keepdims=True)
        return tf.nn.batch_normalization(value, mean, variance, tf.zeros([width]), tf.ones([width]), 1e-12)

    def split(value):
        return tf.transpose(tf.reshape(value, [-1, length, heads, width // heads]), [0, 2, 1, 3])

    query, key, value = (split(dense(x, width, width)) for _ in range(3))
    scores = tf.matmul(query, key, transpose_b=True) * (1.0 / np.sqrt(width // heads))
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    flat = tf.reshape(x, [-1, width])
    attended = norm(flat + dense(mixed, width, width))
    inner = dense(attended, width, 4 * width)
    gelu = inner * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * tf.pow(inner, 3))))
    return [x], norm(attended + dense(gelu, 4 * width, width))


#: model -> (builder, batches); the large nets get smaller ones.
MODELS = {"MMOE": (mmoe, (1, 64, 1024)), "DIN": (din, (1, 64, 1024)), "DeepFM": (deepfm, (1, 64, 1024)),
          "BST": (bst, (1, 64, 1024)), "BERT-layer": (bert_layer, (1, 8)), "ResNet-50": (resnet50, (1, 4))}


def _values(tensor, batch, generator):
    dims = [batch if d.value is None else d.value for d in tensor.shape]
    if "seq_length" in tensor.op.name:
        return generator.randint(1, 50, dims).astype(tensor.dtype.as_numpy_dtype)
    if tensor.dtype.is_integer:
        return generator.randint(1, VOCABULARY, dims).astype(tensor.dtype.as_numpy_dtype)
    return generator.uniform(0, 1, dims).astype(tensor.dtype.as_numpy_dtype)


def build(folder: Path, name: str, batches) -> None:
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(7)
        made = MODELS[name][0]()
        inputs, output = made if isinstance(made, tuple) else (made.inputs, made.outputs)
        outputs = output if isinstance(output, list) else [output]
        joined = tf.concat([tf.reshape(o, [-1]) for o in outputs], 0) if len(outputs) > 1 else outputs[0]
        session = v1.keras.backend.get_session()
        with session.as_default():
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        definition = tf.compat.v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [joined.op.name])
        present = {n.name for n in definition.node}
        feeds = {}
        for batch in batches:
            generator = np.random.RandomState(batch)
            feeds[batch] = {t.name: _values(t, batch, generator) for t in inputs if t.op.name in present}
    with tf.Graph().as_default() as frozen:
        tf.import_graph_def(definition, name="")
    with v1.Session(graph=frozen) as plain:
        for batch, feed in feeds.items():
            result = plain.run(joined.name, feed)
            np.savez(str(folder / ("%s-%d.npz" % (name, batch))), __expected=result,
                     **{k.replace("/", "|"): v for k, v in feed.items()})
    (folder / (name + ".pb")).write_bytes(definition.SerializeToString())
    (folder / (name + ".json")).write_text(json.dumps({"output": joined.name}))


def _folder() -> Path:
    return Path(os.environ[FOLDER])


def load(name: str, batch: int):
    """(GraphDef, name of the output tensor, {input tensor's name: array})"""
    definition = v1.GraphDef.FromString((_folder() / (name + ".pb")).read_bytes())
    output = json.loads((_folder() / (name + ".json")).read_text())["output"]
    with np.load(str(_folder() / ("%s-%d.npz" % (name, batch)))) as arrays:
        feed = {k.replace("|", "/"): arrays[k] for k in arrays.files if k != "__expected"}
    return definition, output, feed


def expected(name: str, batch: int) -> np.ndarray:
    """TensorFlow's own result on the feed."""
    with np.load(str(_folder() / ("%s-%d.npz" % (name, batch)))) as arrays:
        return arrays["__expected"]


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2], [int(b) for b in sys.argv[3:]])
