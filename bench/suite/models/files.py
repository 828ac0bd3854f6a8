"""A model's files: the frozen graph, and for each batch a feed with TensorFlow's own result on it."""
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
from tensorflow.core.framework.graph_pb2 import GraphDef  # noqa: E402

FOLDER = "AUTOFUSE_BENCH_MODELS"


def save(folder: Path, name: str, definition, output: str) -> None:
    """output: name of the output tensor."""
    (folder / (name + ".pb")).write_bytes(definition.SerializeToString())
    (folder / (name + ".json")).write_text(json.dumps({"output": output}))


def save_feed(folder: Path, name: str, batch: int, feed, result: np.ndarray) -> None:
    """feed: input tensor's name -> array"""
    np.savez(str(folder / ("%s-%d.npz" % (name, batch))), __expected=result,
             **{k.replace("/", "|"): v for k, v in feed.items()})


def _folder() -> Path:
    return Path(os.environ[FOLDER])


def load(name: str, batch: int):
    """(GraphDef, name of the output tensor, {input tensor's name: array})"""
    definition = GraphDef.FromString((_folder() / (name + ".pb")).read_bytes())
    output = json.loads((_folder() / (name + ".json")).read_text())["output"]
    with np.load(str(_folder() / ("%s-%d.npz" % (name, batch)))) as arrays:
        feed = {k.replace("|", "/"): arrays[k] for k in arrays.files if k != "__expected"}
    return definition, output, feed


def expected(name: str, batch: int) -> np.ndarray:
    """TensorFlow's own result on the feed."""
    with np.load(str(_folder() / ("%s-%d.npz" % (name, batch)))) as arrays:
        return arrays["__expected"]
