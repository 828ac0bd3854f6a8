"""BERT, written out of basic ops as the published code does it."""
import numpy as np
import tensorflow as tf

from bench.suite.models.features import VOCABULARY

v1 = tf.compat.v1


class _Weights:
    """Constants: small random numbers, the same in every process."""

    def __init__(self):
        self._generator = np.random.RandomState(3)

    def normal(self, *dims, deviation):
        return tf.constant((self._generator.randn(*dims) * deviation).astype(np.float32))


def _dense(weights, value, rows, columns):
    flat = tf.matmul(tf.reshape(value, [-1, rows]),
                     weights.normal(rows, columns, deviation=1 / np.sqrt(rows)))
    return tf.nn.bias_add(flat, weights.normal(columns, deviation=0.02))


def _norm(value, width):
    mean, variance = tf.nn.moments(value, [-1], keepdims=True)
    return tf.nn.batch_normalization(value, mean, variance, tf.zeros([width]), tf.ones([width]), 1e-12)


def _encoder(weights, x, length, width, heads, penalty=None):
    """One layer. x: [batch * length, width]; penalty: what masked positions add to the scores."""
    size = width // heads

    def split(value):
        return tf.transpose(tf.reshape(value, [-1, length, heads, size]), [0, 2, 1, 3])

    query, key, value = (split(_dense(weights, x, width, width)) for _ in range(3))
    scores = tf.matmul(query, key, transpose_b=True) * (1.0 / np.sqrt(size))
    if penalty is not None:
        scores += penalty
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    attended = _norm(x + _dense(weights, mixed, width, width), width)
    inner = _dense(weights, attended, width, 4 * width)
    gelu = inner * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * tf.pow(inner, 3))))
    return _norm(attended + _dense(weights, gelu, 4 * width, width), width)


def bert_layer(length=128, width=768, heads=12):
    x = v1.placeholder(tf.float32, [None, length, width], name="hidden")
    return [x], [_encoder(_Weights(), tf.reshape(x, [-1, width]), length, width, heads)]


def bert_small(length=64, width=128, heads=2, layers=2):
    """The whole encoder: embeddings of ids, segments and positions, a mask, layers, and the pooled output."""
    ids, mask, segments = (v1.placeholder(tf.int32, [None, length], n) for n in ("ids", "mask", "segments"))
    weights = _Weights()
    words = tf.nn.embedding_lookup(weights.normal(VOCABULARY, width, deviation=0.5), ids)
    kinds = tf.matmul(tf.one_hot(tf.reshape(segments, [-1]), 2), weights.normal(2, width, deviation=0.5))
    positions = tf.slice(weights.normal(512, width, deviation=0.5), [0, 0], [length, width])
    x = words + tf.reshape(kinds, [-1, length, width]) + tf.reshape(positions, [1, length, width])
    x = tf.reshape(_norm(x, width), [-1, width])
    penalty = (1.0 - tf.cast(tf.reshape(mask, [-1, 1, 1, length]), tf.float32)) * -10000.0
    for _ in range(layers):
        x = _encoder(weights, x, length, width, heads, penalty)
    first = tf.squeeze(tf.reshape(x, [-1, length, width])[:, 0:1, :], axis=1)
    return [ids, mask, segments], [tf.tanh(_dense(weights, first, width, width))]
