"""A frozen graph from a file through the graph passes, without a run of it.

On entry a GraphDef, binary or as text, whose inputs are its placeholders. On exit the journal has the record
of its pass, and `fused_graph` gives the graph with a node of its own op type for each fused op, which GE's
TensorFlow parser reads (codegen/ascendc/project.py has the plug-in for it)."""

import json
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

from tf_autofuse.config_values import meant, nearest_of
from tf_autofuse.frontend import entry, plugin
from tf_autofuse.frontend.profiler import FUSED

#: Fallback functions begin with it (native/edits.h).
_FALLBACK = "__autofuse_fallback_"


class GraphFileError(Exception):
    """The file can't be used; the text says why and what to do."""


class Pass(NamedTuple):
    """What the passes made. after: the graph with fused ops. feeds, fetches: tensors ('x:0') in the order of
    _Arg and _Retval nodes. shapes: of the feeds, -1 where unknown; None without a known rank."""

    after: graph_pb2.GraphDef
    feeds: Tuple[str, ...]
    fetches: Tuple[str, ...]
    shapes: Dict[str, Sequence[int]]


def read(path: str) -> graph_pb2.GraphDef:
    """Raises GraphFileError."""
    graph = graph_pb2.GraphDef()
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise GraphFileError("%s can't be read (%s)" % (path, error.strerror or error))
    try:
        if path.endswith(".pbtxt"):
            text_format.Parse(data.decode("utf-8"), graph)
        else:
            graph.ParseFromString(data)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise GraphFileError(
            "%s is no GraphDef (%s); give a frozen graph as .pb or .pbtxt" % (path, str(error).split("\n")[0])
        )
    if not graph.node:
        raise GraphFileError("%s has no nodes; give a frozen graph as .pb or .pbtxt" % path)
    return graph


def run_passes(graph: graph_pb2.GraphDef, outputs: Sequence[str]) -> Pass:
    """Has TensorFlow prepare the graph for a run. outputs: nodes or tensors; none: all that nobody reads.

    TensorFlow's own rewrites are off, so that the graph stays one of ops that others know. Raises
    GraphFileError."""
    session_graph = tf.Graph()
    with session_graph.as_default():
        try:
            tf.import_graph_def(graph, name="")
        except (ValueError, KeyError) as error:
            raise GraphFileError("TensorFlow refuses the graph: %s" % str(error).split("\n")[0])
    operations = session_graph.get_operations()
    placeholders = [op for op in operations if op.type in ("Placeholder", "PlaceholderV2")]
    fetches = _outputs(session_graph, outputs) if outputs else _unread(operations)
    if not fetches:
        raise GraphFileError("every tensor of the graph is read inside; name the outputs with --outputs")
    held = [op.name for op in operations if op.type in ("VariableV2", "VarHandleOp", "Variable")]
    if held:
        raise GraphFileError(
            "the graph has variables (%s ...); freeze it first: "
            "tf.graph_util.convert_variables_to_constants" % held[0]
        )
    feeds = [op.outputs[0] for op in placeholders]
    made: List[bytes] = []
    native = plugin.native()
    native.set_dump(True)
    native.set_dump_callback(lambda stage, data, context: made.append(data) if stage == "after" else None)
    try:
        with tf.compat.v1.Session(graph=session_graph, config=_config()) as session:
            options = config_pb2.CallableOptions()
            options.feed.extend(t.name for t in feeds)
            options.fetch.extend(fetches)
            session._make_callable_from_options(options)
    except tf.errors.OpError as error:
        raise GraphFileError("TensorFlow refuses the graph: %s" % error.message.split("\n")[0])
    finally:
        plugin.register_again()
    if not made:
        raise GraphFileError("the passes left the graph as it was; `tf-autofuse doctor` checks the plugin")
    after = graph_pb2.GraphDef()
    after.ParseFromString(made[-1])
    shapes = {t.name: _dims(t.shape) for t in feeds}
    return Pass(after, tuple(t.name for t in feeds), tuple(fetches), shapes)


def _config():
    config = entry.configure(tf.compat.v1.ConfigProto(), {})
    config.graph_options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def _dims(shape):
    return None if shape.dims is None else [-1 if d.value is None else d.value for d in shape.dims]


def _unread(operations) -> List[str]:
    return [
        op.outputs[0].name
        for op in operations
        if op.outputs
        and op.type not in ("Placeholder", "PlaceholderV2", "Const")
        and not any(t.consumers() for t in op.outputs)
    ]


def _outputs(graph, names: Sequence[str]) -> List[str]:
    known = [op.name for op in graph.get_operations()]
    result = []
    for name in names:
        tensor = name if ":" in name else name + ":0"
        try:
            result.append(graph.get_tensor_by_name(tensor).name)
        except (KeyError, ValueError):
            nearest = nearest_of(name.split(":")[0], known)
            raise GraphFileError(
                "the graph has no tensor %s%s" % (name, meant(nearest))
            )
    return result


def fused_graph(passed: Pass, types: Mapping[str, str]) -> Tuple[graph_pb2.GraphDef, Dict[str, str]]:
    """(the graph with the op type `types[name]` for each fused op of that name, the tensors that have the
    fetches' values by the fetches' names).

    Placeholders stand in the place of arguments. A fetch that became a fused op's output keeps its name where
    that can be: an Identity of that name reads it. Raises KeyError for a fused op without a type."""
    graph = graph_pb2.GraphDef()
    graph.versions.CopyFrom(passed.after.versions)
    after = passed.after.node
    renamed = {n.name: _operation(passed.feeds[n.attr["index"].i]) for n in after if n.op == "_Arg"}
    sources: Dict[int, str] = {}
    made: Dict[str, List[int]] = {}  # the output types of fused ops
    for node in after:
        inputs = [_renamed(i, renamed) for i in node.input]
        if node.op == "_Retval":
            sources[node.attr["index"].i] = inputs[0]
            continue
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.device = ""
        copy.input[:] = inputs
        for name in [n for n in copy.attr if n.startswith("_")]:
            del copy.attr[name]
        if node.op == "_Arg":
            _make_placeholder(copy, passed, node)
        elif node.op in FUSED:
            made[node.name] = list(node.attr["Tout"].list.type)
            copy.op = types[node.name]
            copy.attr.clear()
    for function in passed.after.library.function:
        if not function.signature.name.startswith(_FALLBACK):
            graph.library.function.add().CopyFrom(function)
    return graph, _named(graph, made, [sources[i] for i in sorted(sources)], passed.fetches)


def _operation(tensor: str) -> str:
    return tensor.split(":")[0]


def _renamed(tensor: str, renamed: Mapping[str, str]) -> str:
    mark = "^" if tensor.startswith("^") else ""
    name, colon, port = tensor[len(mark) :].partition(":")
    return mark + renamed.get(name, name) + colon + port


def _make_placeholder(node, passed: Pass, argument) -> None:
    feed = passed.feeds[argument.attr["index"].i]
    node.name, node.op = _operation(feed), "Placeholder"
    node.attr.clear()
    node.attr["dtype"].type = argument.attr["T"].type
    dims = passed.shapes[feed]
    if dims is None:
        node.attr["shape"].shape.unknown_rank = True
    else:
        node.attr["shape"].shape.SetInParent()
        for dim in dims:
            node.attr["shape"].shape.dim.add().size = dim


def _named(graph, made: Mapping[str, Sequence[int]], sources: Sequence[str], fetches: Sequence[str]):
    taken = {node.name for node in graph.node}
    result = {}
    for source, fetch in zip(sources, fetches):
        name, _, port = fetch.partition(":")
        fused, _, number = source.partition(":")
        if fused in made and name not in taken and port == "0":
            identity = graph.node.add(name=name, op="Identity", input=[source])
            identity.attr["T"].type = made[fused][int(number or 0)]
            taken.add(name)
            source = name
        result[fetch] = source
    return result


def files(passed: Pass, types: Mapping[str, str]) -> Dict[str, bytes]:
    """The exported project's files about the graph: the graph, and what its inputs and outputs are called."""
    graph, outputs = fused_graph(passed, types)
    interface = {"inputs": [_operation(t) for t in passed.feeds], "outputs": outputs}
    return {
        "fused_graph.pb": graph.SerializeToString(),
        "fused_graph.json": (json.dumps(interface, indent=2) + "\n").encode("utf-8"),
    }
