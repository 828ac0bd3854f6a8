"""`python -m tf_autofuse.frontend.recorded_run off|on FOLDER SCRIPT ...`: one side of `tf-autofuse compare`.

Holds while the script runs: every session is profiled into FOLDER and what it fetches is kept there; fusion
is off for all graphs, or on for all sessions, also those without an entry; random numbers of Python, numpy
and TF graphs are seeded."""

import os
import random
import sys
from typing import Any, List

import numpy as np

#: Runs whose fetches are kept, and bytes of them.
_MOST_RUNS, _MOST_BYTES = 1000, 1 << 28
_SEED = 20221


class _Saver:
    """Keeps what runs fetched, as fetched_<n>.npz."""

    def __init__(self, folder: str):
        self.folder, self.runs, self.bytes = folder, 0, 0

    def __call__(self, result: Any) -> None:
        arrays: List[np.ndarray] = []
        _flatten(result, arrays)
        self.bytes += sum(a.nbytes for a in arrays)
        if arrays and self.runs < _MOST_RUNS and self.bytes < _MOST_BYTES:
            path = os.path.join(self.folder, "fetched_%06d.npz" % self.runs)
            np.savez(path, **{"a%d" % i: a for i, a in enumerate(arrays)})
            self.runs += 1


def _flatten(value: Any, into: List[np.ndarray]) -> None:
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            _flatten(value[key], into)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _flatten(item, into)
    elif isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "fiubc":
        into.append(np.asarray(value))


def main(side: str, folder: str, script: str, arguments: List[str]) -> None:
    os.makedirs(folder, exist_ok=True)
    random.seed(_SEED)
    np.random.seed(_SEED)

    import tensorflow  # noqa: F401  loads the native part, with our hooks
    from tensorflow.python.framework import ops

    from tf_autofuse.config import Config
    from tf_autofuse.frontend import entry, plugin, profiler
    from tf_autofuse.script import run_script

    saver = _Saver(folder)
    profiler.override(
        lambda session: profiler.SessionProfiler(folder, Config.from_sources(os.environ), saver)
    )
    make_graph = ops.Graph.__init__

    def init_graph(self, *args, **kwargs):
        make_graph(self, *args, **kwargs)
        self.seed = _SEED

    ops.Graph.__init__ = init_graph
    ops.reset_default_graph()
    if side == "off":
        plugin.native().set_wants(lambda context: False)
    else:
        entry.for_all_sessions()
    run_script(script, arguments)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
