"""The TF graph before and after fusion as .pbtxt files, as GE's DUMP_GE_GRAPH does it.

DUMP_GE_GRAPH: 1 everything, 2 without the values of constants, 3 names, ops and edges only.
DUMP_GRAPH_LEVEL: 1 every graph, 2 without function bodies, 3 (default 2) only the graph after fusion.
DUMP_GRAPH_PATH: the folder (default: the working directory). Netron opens the files.
"""
import itertools
import os
from pathlib import Path
from typing import Optional

from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2

from tf_autofuse.config import Config

_numbers = itertools.count()


def dump_graph(stage: str, serialized: bytes, graph_name: str, config: Config) -> Optional[Path]:
    """Writes the GraphDef, if the config asks for this stage. Returns the file, or None. Raises OSError."""
    if not config.dump_ge_graph:
        return None
    level = config.dump_graph_level
    if level == 3 and stage != "after":
        return None
    graph = graph_pb2.GraphDef()
    graph.ParseFromString(serialized)
    if config.dump_ge_graph >= 2:
        for node in itertools.chain(graph.node, *(f.node_def for f in graph.library.function)):
            _shorten(node, config.dump_ge_graph)
    if level >= 2:
        graph.ClearField("library")
    folder = Path(config.dump_graph_path or ".")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("ge_tf_%d_%05d_%s_%s.pbtxt" % (os.getpid(), next(_numbers), graph_name, stage))
    path.write_text(text_format.MessageToString(graph))
    return path


def _shorten(node, level: int) -> None:
    """Level 2 drops constants' values (dtype and shape stay), level 3 every attribute."""
    if level >= 3:
        node.ClearField("attr")
        return
    if node.op == "Const":
        tensor = node.attr["value"].tensor
        for field in [f.name for f, _ in tensor.ListFields() if f.name not in ("dtype", "tensor_shape")]:
            tensor.ClearField(field)
    if "asc_graph" in node.attr:
        node.attr["asc_graph"].s = b""
