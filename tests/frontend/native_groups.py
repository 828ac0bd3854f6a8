"""How the blocks of a launch are grouped, in a process of its own: TensorFlow's intra-op pool is the
process's, and as large as its first session wants.

Run: python -m tests.frontend.native_groups THREADS LIBRARY... with libraries of KIND GROUPS. Prints for
each library the smallest and the largest group of 48 blocks, with small_bytes 0 and with small_bytes 1
<< 30, as JSON.
"""

import json
import sys

import numpy as np
import tensorflow as tf

from tests.frontend.native_session import Recorder, _native, config, edit, meta, v1

SIZE = 48 * 256


def groups(threads, library, small_bytes):
    key = "%s %d" % (library, small_bytes)
    _native.register_kernel(key, meta(library, "GROUPS", small_bytes=small_bytes))
    Recorder(lambda columns: [edit(columns, ["Neg"], key=key)]).install()
    proto = config(grappler=False)
    proto.intra_op_parallelism_threads = threads
    with tf.Graph().as_default(), v1.Session(config=proto) as session:
        a = v1.placeholder(tf.float32, [None], name="a")
        result = session.run(tf.negative(a, name="Neg"), {a: np.ones(SIZE, np.float32)})
    assert _native.stats()[key]["fallbacks"] == 0
    return int(result.min()), int(result.max())


def main(threads, libraries):
    _native.set_wants(None)  # importing the package has set its own
    print(json.dumps([groups(threads, path, small) for path in libraries for small in (0, 1 << 30)]))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
