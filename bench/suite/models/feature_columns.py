"""A wide and deep model of feature columns, as tf.estimator's DNNLinearCombinedClassifier makes it: strings
are hashed, crossed and looked up by hundreds of small ops."""
import tensorflow as tf

from bench.suite.models.features import DENSE, EMBEDDING, SPARSE, VOCABULARY

v1 = tf.compat.v1
HIDDEN = (128, 64)


def wide_deep():
    columns = v1.feature_column
    sparse = ["C%d" % i for i in range(SPARSE)]
    dense = ["I%d" % i for i in range(DENSE)]
    features = {n: v1.placeholder(tf.string, [None, 1], n) for n in sparse}
    features.update({n: v1.placeholder(tf.float32, [None, 1], n) for n in dense})
    hashed = [tf.feature_column.categorical_column_with_hash_bucket(n, VOCABULARY) for n in sparse]
    crossed = [tf.feature_column.crossed_column(pair, VOCABULARY) for pair in zip(sparse[::2], sparse[1::2])]
    numbers = [tf.feature_column.numeric_column(n) for n in dense]
    embedded = [tf.feature_column.embedding_column(c, EMBEDDING) for c in hashed]
    with v1.variable_scope("wide"):
        wide = columns.linear_model(features, hashed + crossed)
    with v1.variable_scope("deep"):
        deep = columns.input_layer(features, embedded + numbers)
        for width in HIDDEN:
            deep = v1.layers.dense(deep, width, activation=tf.nn.relu)
        deep = v1.layers.dense(deep, 1)
    logits = wide + deep
    both = tf.concat([tf.zeros_like(logits), logits], 1)
    return list(features.values()), [tf.nn.softmax(both)]
