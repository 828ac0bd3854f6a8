"""Runs one TF graph with the plugin off and on and compares what comes out.

TF 1.15's own kernels are the oracle. The reference runs with Grappler off, so that no rewrite of TF's own
changes it. A case that was meant to be fused and was not is a failure: `run_pair` returns the names of the
fused ops that really ran, taken from the executed graph.
"""
import contextlib
import os
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow as tf

import tf_autofuse

ON = "--enable_autofuse=true"
LIFTING_OFF = "--disable_lifting=true"


class Pair(NamedTuple):
    """values: per feed, (plain outputs, fused outputs). fused: names of AscBackend nodes in the executed
    graph. fallbacks: how many calls the fallback function served."""

    values: List[Tuple[List[np.ndarray], List[np.ndarray]]]
    fused: List[str]
    fallbacks: int


@contextlib.contextmanager
def environment(**values: str):
    """Environment variables for the block; None unsets one."""
    before = {k: os.environ.get(k) for k in values}
    try:
        for k, v in values.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v
        yield
    finally:
        for k, v in before.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v


def plain_config() -> tf.compat.v1.ConfigProto:
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def fused_config(precision_mode: str = "must_keep_origin_dtype") -> tf.compat.v1.ConfigProto:
    config = plain_config()
    tf_autofuse.configure(config, precision_mode=precision_mode)
    return config


def executed_nodes(session, fetches, feed) -> Tuple[list, list]:
    """(fetched values, NodeDefs of the graph that ran)."""
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    values = session.run(fetches, feed, options=options, run_metadata=metadata)
    return values, [n for g in metadata.partition_graphs for n in g.node]


def run_pair(
    build: Callable[[], Tuple[Dict[str, tf.Tensor], List[tf.Tensor]]],
    feeds: Sequence[Dict[str, np.ndarray]],
    flags: str = ON,
    dfx: str = LIFTING_OFF,
    precision_mode: str = "must_keep_origin_dtype",
    target: str = "ascend",
) -> Pair:
    """`build` makes the graph in the default graph: (placeholders by name, fetches). Each feed runs on both
    sides."""
    from tf_autofuse.frontend import plugin
    graph = tf.Graph()
    with graph.as_default():
        placeholders, fetches = build()
    with tf.compat.v1.Session(graph=graph, config=plain_config()) as session:
        plain = [session.run(fetches, {placeholders[k]: v for k, v in feed.items()}) for feed in feeds]
    before = sum(s["fallbacks"] for s in plugin.native().stats().values())
    with environment(AUTOFUSE_FLAGS=flags, AUTOFUSE_DFX_FLAGS=dfx, AUTOFUSE_TARGET=target):
        with tf.compat.v1.Session(graph=graph, config=fused_config(precision_mode)) as session:
            fused, names = [], []
            for feed in feeds:
                named = {placeholders[k]: v for k, v in feed.items()}
                if not names:
                    value, nodes = executed_nodes(session, fetches, named)
                    names = [n.name for n in nodes if n.op in ("AscBackend", "FusedAscBackend")]
                else:
                    value = session.run(fetches, named)
                fused.append(value)
    after = sum(s["fallbacks"] for s in plugin.native().stats().values())
    return Pair(list(zip(plain, fused)), names, after - before)


_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def as_bits(array: np.ndarray) -> np.ndarray:
    """The elements' bits, with every NaN made the same (payload and sign of a NaN mean nothing in TF)."""
    array = np.asarray(array)
    bits = np.ascontiguousarray(array).view(_BITS[array.dtype.itemsize]).reshape(array.shape).copy()
    as_float = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    if as_float.dtype.kind == "f":
        bits[np.isnan(as_float)] = np.iinfo(bits.dtype).max
    return bits


def bit_differences(plain: np.ndarray, fused: np.ndarray) -> str:
    """'' where both are equal in dtype, shape and bits; else a text that shows the first differences."""
    plain, fused = np.asarray(plain), np.asarray(fused)
    if plain.dtype != fused.dtype or plain.shape != fused.shape:
        return "TF gives %s%s, fused gives %s%s" % (plain.dtype, plain.shape, fused.dtype, fused.shape)
    wrong = np.argwhere(as_bits(plain) != as_bits(fused))
    if not len(wrong):
        return ""
    shown = [
        "at %s TF gives %r, fused gives %r" % (tuple(i), plain[tuple(i)], fused[tuple(i)])
        for i in wrong[:4]
    ]
    return "%d of %d differ: %s" % (len(wrong), plain.size, "; ".join(shown))


def ulp_error(value: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """|value - reference| in units in the last place of value's dtype at the reference (float64).

    Equal infinities and NaN on both sides give 0; NaN or infinity on one side only gives inf; results whose
    reference is below the smallest normal number are measured in ulps of that number (flushing is allowed).
    """
    info = np.finfo(value.dtype)
    v, r = value.astype(np.float64), reference.astype(np.float64)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(r), float(info.tiny))))
        exponent = np.where(np.isfinite(exponent), exponent, 0)
        error = np.abs(v - r) / np.exp2(exponent - info.nmant)
    rounded = r.astype(value.dtype).astype(np.float64)
    same = (np.isnan(v) & np.isnan(r)) | (v == r) | (v == rounded)
    tiny = (np.abs(r) < float(info.tiny)) & (v == 0)
    return np.where(same | tiny, 0.0, np.where(np.isfinite(error), error, np.inf))
