"""A recurrent net: an embedding, an LSTM in tf.nn.dynamic_rnn's while loop, and a logit."""
import tensorflow as tf

from bench.suite.models.features import LONGEST, VOCABULARY

v1 = tf.compat.v1


def lstm(width=64, units=128):
    ids = v1.placeholder(tf.int32, [None, LONGEST], "ids")
    lengths = v1.placeholder(tf.int32, [None], "seq_length")
    table = v1.get_variable("table", [VOCABULARY, width])
    cell = v1.nn.rnn_cell.LSTMCell(units)
    _, state = v1.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, ids), lengths, dtype=tf.float32)
    return [ids, lengths], [v1.layers.dense(state.h, 1, activation=tf.sigmoid)]
