import json

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *

tf.compat.v1.disable_eager_execution()

data1 = tf.compat.v1.placeholder(tf.float32, shape=[128], name="data1")
data2 = tf.compat.v1.placeholder(tf.float32, shape=[192, 128], name="data2")
result = tf.nn.relu(tf.add(tf.abs(data1), data2))

config = tf.compat.v1.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["use_off_line"].b = True
custom_op.parameter_map["graph_run_mode"].i = 0
custom_op.parameter_map["profiling_mode"].b = True
custom_op.parameter_map["profiling_options"].s = tf.compat.as_bytes(
    json.dumps({"output": "./profiling", "task_trace": "on"}))
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF

feeds = {data1: np.random.randn(128), data2: np.random.randn(192, 128)}
with tf.compat.v1.Session(config=config) as sess:
    for _ in range(100):
        output = sess.run(result, feed_dict=feeds)
print(output.shape)
