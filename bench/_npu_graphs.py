"""Inference graphs for bench/npu_models.py: written out of TF 1.15's basic ops from public descriptions, in
float16, as the precision mode force_fp16 makes them on an NPU. Weights are placeholders: nothing is trained,
downloaded or run. Every builder returns the fetches; the batch is known."""

import math
from typing import Callable, Dict, List, NamedTuple

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
HALF = tf.float16


def weight(*dims, dtype=HALF):
    return v1.placeholder(dtype, dims, "weight")


def dense(x, width, activation=None):
    """x [.., n] times [n, width], bias, activation."""
    dims = x.shape.as_list()
    flat = x if len(dims) == 2 else tf.reshape(x, [-1, dims[-1]])
    y = tf.nn.bias_add(tf.matmul(flat, weight(dims[-1], width)), weight(width))
    y = activation(y) if activation is not None else y
    return y if len(dims) == 2 else tf.reshape(y, dims[:-1] + [width])


def layer_norm(x, epsilon=1e-5):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    width = x.shape[-1]
    return tf.nn.batch_normalization(x, mean, variance, weight(width), weight(width), epsilon)


def gelu(x):
    """With erf, as BERT's later code and Swin have it."""
    return x * 0.5 * (1.0 + tf.math.erf(x * 0.7071067811865476))


def silu(x):
    return x * tf.sigmoid(x)


def heads_of(x, heads):
    """[b, n, d] -> [b, heads, n, d / heads]"""
    b, n, d = x.shape.as_list()
    return tf.transpose(tf.reshape(x, [b, n, heads, d // heads]), [0, 2, 1, 3])


def joined(x):
    """heads_of, back."""
    b, heads, n, d = x.shape.as_list()
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [b, n, heads * d])


def embeddings(batch, fields, vocabulary=100000, width=16):
    """One look-up a field, joined: [batch, fields * width]."""
    rows = [tf.gather(weight(vocabulary, width), v1.placeholder(tf.int32, [batch])) for _ in range(fields)]
    return tf.concat(rows, 1)


def eta(batch=64, length=1024, width=64, bits=32, kept=48, fields=20) -> List:
    """Efficient target attention: a behaviour sequence and the target are hashed to bits by random
    projections (SimHash); the items at the least Hamming distance attend to the target."""
    items = weight(200000, width)
    history = tf.gather(items, v1.placeholder(tf.int32, [batch, length]))
    target = tf.gather(items, v1.placeholder(tf.int32, [batch]))
    planes = weight(width, bits)
    codes = tf.reshape(tf.matmul(tf.reshape(history, [-1, width]), planes) > 0.0, [batch, length, bits])
    code = tf.expand_dims(tf.matmul(target, planes) > 0.0, 1)
    distance = tf.reduce_sum(tf.cast(tf.not_equal(codes, code), tf.float32), -1)
    _, nearest = tf.nn.top_k(-distance, kept)
    rows = tf.reshape(nearest + np.arange(batch, dtype=np.int32)[:, None] * length, [-1])
    near = tf.reshape(tf.gather(tf.reshape(history, [-1, width]), rows), [batch, kept, width])

    def attend(sequence, heads=4):
        query = heads_of(tf.expand_dims(dense(target, width), 1), heads)
        key, value = (heads_of(dense(sequence, width), heads) for _ in range(2))
        scores = tf.matmul(query, key, transpose_b=True) * (1.0 / math.sqrt(width // heads))
        return tf.reshape(joined(tf.matmul(tf.nn.softmax(scores), value)), [batch, width])

    recent = tf.gather(items, v1.placeholder(tf.int32, [batch, 16]))
    x = tf.concat([attend(near), attend(recent), target, embeddings(batch, fields)], 1)
    for units in (1024, 512, 256):
        x = dense(x, units, prelu)
    return [tf.sigmoid(dense(x, 1))]


def prelu(x):
    return tf.maximum(x, 0.0) + weight(x.shape[-1]) * tf.minimum(x, 0.0)


def mmoe(batch=512, sparse=26, numbers=13, experts=8, tasks=2) -> List:
    """Multi-gate mixture of experts: experts see all features, each task mixes them by a softmax gate of its
    own and has a tower."""
    features = tf.concat([embeddings(batch, sparse), v1.placeholder(HALF, [batch, numbers])], 1)
    outputs = []
    for _ in range(experts):
        outputs.append(dense(dense(features, 256, tf.nn.relu), 128, tf.nn.relu))
    mixture = tf.stack(outputs, 1)
    found = []
    for _ in range(tasks):
        gate = tf.nn.softmax(tf.matmul(features, weight(features.shape[-1], experts)))
        mixed = tf.reduce_sum(mixture * tf.expand_dims(gate, -1), 1)
        found.append(tf.sigmoid(dense(dense(mixed, 64, tf.nn.relu), 1)))
    return found


def generative(batch=8, length=256, width=256, heads=4, layers=8) -> List:
    """A generative recommender of HSTU layers: attention by SiLU in the place of softmax, with biases by
    relative position and by time between actions, gated by U, no feed-forward part."""
    x = tf.gather(weight(200000, width), v1.placeholder(tf.int32, [batch, length])) * math.sqrt(width)
    x = x + weight(length, width)
    times = v1.placeholder(tf.int32, [batch, length])
    between = tf.cast(tf.abs(tf.expand_dims(times, 2) - tf.expand_dims(times, 1)), tf.float32)
    buckets = tf.cast(tf.math.log(tf.maximum(between, 1.0)) / 0.301, tf.int32)
    buckets = tf.minimum(tf.maximum(buckets, 0), 127)
    causal = weight(length, length)
    for _ in range(layers):
        mixed = silu(tf.matmul(tf.reshape(layer_norm(x), [-1, width]), weight(width, 4 * width)))
        u, v, q, k = tf.split(tf.reshape(mixed, [batch, length, 4 * width]), 4, -1)
        scores = tf.matmul(heads_of(q, heads), heads_of(k, heads), transpose_b=True)
        bias = weight(1, length, length) + tf.gather(weight(128), buckets)
        scores = silu(scores + tf.expand_dims(bias, 1)) * (1.0 / length) * causal
        attended = joined(tf.matmul(scores, heads_of(v, heads)))
        x = dense(layer_norm(attended) * u, width) + x
    last = tf.reshape(x[:, -1:, :], [batch, width])
    return [tf.matmul(tf.nn.l2_normalize(last, -1), weight(1000, width), transpose_b=True)]


def bert_base(batch=8, length=128, width=768, heads=12, layers=12) -> List:
    """BERT-base's encoder, with its embeddings and pooler."""
    words = tf.gather(weight(30522, width), v1.placeholder(tf.int32, [batch, length]))
    segments = tf.gather(weight(2, width), v1.placeholder(tf.int32, [batch, length]))
    x = layer_norm(words + segments + weight(length, width), 1e-6)
    mask = tf.cast(v1.placeholder(tf.int32, [batch, length]), HALF)
    mask = (1.0 - tf.reshape(mask, [batch, 1, 1, length])) * -10000.0
    for _ in range(layers):
        q, k, v = (heads_of(dense(x, width), heads) for _ in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * (1.0 / math.sqrt(width // heads)) + mask
        x = layer_norm(x + dense(joined(tf.matmul(tf.nn.softmax(scores), v)), width), 1e-6)
        x = layer_norm(x + dense(dense(x, 4 * width, gelu), width), 1e-6)
    return [dense(tf.reshape(x[:, :1, :], [batch, width]), width, tf.tanh)]


def resnet50(batch=8, folded=True) -> List:
    """ResNet-50 (version 1.5) in NHWC. folded: batch norms are folded into the filters, as freezing tools and
    GE do."""

    def conv(x, filters, size, stride=1, activation=True):
        inputs = x.shape.as_list()[-1]
        y = tf.nn.conv2d(x, weight(size, size, inputs, filters), [1, stride, stride, 1], "SAME")
        if folded:
            y = tf.nn.bias_add(y, weight(filters))
        else:
            scale, offset, mean, variance = (weight(filters, dtype=tf.float32) for _ in range(4))
            y = v1.nn.fused_batch_norm(y, scale, offset, mean, variance, 1e-5, is_training=False)[0]
        return tf.nn.relu(y) if activation else y

    x = conv(v1.placeholder(HALF, [batch, 224, 224, 3]), 64, 7, 2)
    x = tf.nn.max_pool2d(x, 3, 2, "SAME")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            shortcut = x if block else conv(x, 4 * width, 1, stride, False)
            y = conv(conv(conv(x, width, 1), width, 3, stride), 4 * width, 1, 1, False)
            x = tf.nn.relu(y + shortcut)
    return [tf.nn.softmax(dense(tf.reduce_mean(x, [1, 2]), 1000))]


def swin_tiny(batch=8, window=7, depths=(2, 2, 6, 2), width=96) -> List:
    """Swin-T: attention in windows of 7 x 7, shifted in every other block, with relative position biases;
    between stages 2 x 2 patches are merged."""

    def rolled(x, shift):
        for axis in (1, 2):
            size = x.shape.as_list()[axis]
            parts = tf.split(x, [shift % size, size - shift % size], axis)
            x = tf.concat(parts[::-1], axis)
        return x

    def attention(x, heads, shift):
        _, side, _, dim = x.shape.as_list()
        grid, cells = side // window, window * window
        y = rolled(x, shift) if shift else x
        y = tf.transpose(tf.reshape(y, [batch, grid, window, grid, window, dim]), [0, 1, 3, 2, 4, 5])
        y = tf.reshape(y, [batch * grid * grid, cells, dim])
        q, k, v = (heads_of(dense(y, dim), heads) for _ in range(3))
        scores = tf.matmul(q * (1.0 / math.sqrt(dim // heads)), k, transpose_b=True)
        scores = scores + weight(1, heads, cells, cells)
        if shift:
            scores = tf.reshape(scores, [batch, grid * grid, heads, cells, cells])
            scores = scores + weight(1, grid * grid, 1, cells, cells)
            scores = tf.reshape(scores, [batch * grid * grid, heads, cells, cells])
        y = dense(joined(tf.matmul(tf.nn.softmax(scores), v)), dim)
        y = tf.transpose(tf.reshape(y, [batch, grid, grid, window, window, dim]), [0, 1, 3, 2, 4, 5])
        y = tf.reshape(y, [batch, side, side, dim])
        return rolled(y, -shift) if shift else y

    image = v1.placeholder(HALF, [batch, 224, 224, 3])
    x = tf.nn.bias_add(tf.nn.conv2d(image, weight(4, 4, 3, width), [1, 4, 4, 1], "VALID"), weight(width))
    x = layer_norm(x)
    for stage, depth in enumerate(depths):
        if stage:
            corners = [x[:, i::2, j::2, :] for j in range(2) for i in range(2)]
            x = layer_norm(tf.concat(corners, -1))
            flat = tf.matmul(tf.reshape(x, [-1, 2 * width * 2]), weight(4 * width, 2 * width))
            width *= 2
            x = tf.reshape(flat, [batch, x.shape[1], x.shape[2], width])
        for block in range(depth):
            shift = window // 2 if block % 2 and x.shape.as_list()[1] > window else 0
            x = x + attention(layer_norm(x), width // 32, shift)
            x = x + dense(dense(layer_norm(x), 4 * width, gelu), width)
    return [dense(tf.reduce_mean(layer_norm(x), [1, 2]), 1000)]


class Model(NamedTuple):
    """published: percent of op time (or of latency) that AutoFuse is said to save on a model of this name, 0
    where nothing is."""

    build: Callable[[], List]
    published: float = 0.0
    measure: str = ""


MODELS: Dict[str, Model] = {
    "ETA": Model(eta, 35.4, "op time"),
    "MMOE": Model(mmoe, 10.0, "op time"),
    "GR": Model(generative, 44.6, "op time"),
    "BERT-base": Model(bert_base, 32.6, "latency"),
    "ResNet-50": Model(resnet50, 37.8, "latency"),
    "ResNet-50, batch norms": Model(lambda: resnet50(folded=False)),
    "Swin-tiny": Model(swin_tiny, 27.4, "latency"),
}


def columns_of(fetches: List):
    """What the native side would hand over for a session that fetches these."""
    from tf_autofuse.frontend import plugin

    graph = fetches[0].graph
    definition = graph.as_graph_def()
    for i, fetch in enumerate(fetches):
        node = definition.node.add(name="retval_%d" % i, op="_Retval", input=[fetch.name])
        node.attr["T"].type = fetch.dtype.as_datatype_enum
        node.attr["index"].i = i
    return plugin.native().graph_columns(definition.SerializeToString())
