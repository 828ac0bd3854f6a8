"""Records profiled sessions: wraps tf.Session.run and writes what TF's own tracer saw into a PROF_* folder.

A session is profiled where its entry's parameter_map (or the environment) sets profiling_mode. On entry any
call of run(); on exit the same result or exception as without us, and a complete run in the folder.
Whatever goes wrong here is one warning, and the session goes on without being recorded. Other sessions pay
for one attribute look-up a run. Runs by a callable (Session.make_callable) are not seen."""

import json
import os
import threading
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from tf_autofuse import diagnostics, schemas
from tf_autofuse.config import Config
from tf_autofuse.machine import machine_for
from tf_autofuse.profiling.records import MOST_ELEMENTS, Kernel, NodeFacts, OpRun, Tensor, Writer

ENTRIES = ("NpuOptimizer", "AutofuseOptimizer")
FUSED = ("AscBackend", "FusedAscBackend")
_IGNORED = ("_SOURCE", "_SINK")
_WRAPPED = "_tf_autofuse_profiled"
_profilers: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()
#: Called instead of looking at a session's settings, where set: session -> SessionProfiler or None.
_override: List[Callable[[Any], Any]] = []


def install() -> None:
    """Wraps BaseSession.run and the callables that Keras runs its graphs by, once."""
    from tensorflow.python.client.session import BaseSession

    original = BaseSession.run
    if getattr(original, _WRAPPED, False):
        return

    make_callable = BaseSession._make_callable_from_options

    def profiler_of(session):
        try:
            return _profilers[session]
        except KeyError:
            return _profilers.setdefault(session, _profiler_for(session))

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        profiler = profiler_of(self)
        if profiler is None:
            return original(self, fetches, feed_dict, options, run_metadata)
        return profiler.run(original, self, fetches, feed_dict, options, run_metadata)

    def callable_from_options(self, callable_options):
        by_run = not (callable_options.tensor_connection or callable_options.fetch_devices)
        if by_run and profiler_of(self) is not None:
            return _Callable(self, callable_options)
        return make_callable(self, callable_options)

    run.__doc__ = original.__doc__
    setattr(run, _WRAPPED, True)
    BaseSession.run = run
    BaseSession._make_callable_from_options = callable_from_options


class _Callable:
    """What _make_callable_from_options gives, by way of run: TensorFlow's own callables do not tell their
    graphs."""

    def __init__(self, session, options):
        self.session, self.options = session, options
        self.fetches, self.feeds = list(options.fetch), list(options.feed)
        self.targets = [session.graph.as_graph_element(name) for name in options.target]

    def __call__(self, *args, **kwargs):
        found = self.session.run(
            self.fetches + self.targets,
            dict(zip(self.feeds, args)),
            self.options.run_options,
            kwargs.get("run_metadata"),
        )
        return found[: len(self.fetches)]


def override(make: Callable[[Any], Any]) -> None:
    """Every session from now on gets the profiler that make(session) gives."""
    _override[:] = [make]


def wants_tensors(config: Config) -> bool:
    """Whether sessions with these settings are recorded, with the shape of every tensor."""
    return bool(_override or config.profiling_mode)


def parameter_map(config_proto) -> Optional[Dict[str, Any]]:
    """The settings in a ConfigProto's entry for us; None where it has no entry."""
    for entry in (
        config_proto.graph_options.rewrite_options.custom_optimizers if config_proto is not None else ()
    ):
        if entry.name in ENTRIES:
            found = {}
            for name, value in entry.parameter_map.items():
                kind = value.WhichOneof("value")
                if kind in ("b", "i", "f", "s"):
                    item = getattr(value, kind)
                    found[name] = item.decode("utf-8", "replace") if kind == "s" else item
            return found
    return None


def _profiler_for(session):
    try:
        if _override:
            return _override[0](session)
        settings = parameter_map(session._config)
        if settings is None:
            return None
        config = Config.from_sources(os.environ, settings)
        if not config.profiling_mode:
            return None
        options = _options(config.profiling_options)
        if options.get("task_trace", "on") == "off":
            return None
        return SessionProfiler(options.get("output") or ".", config)
    except Exception as error:
        _give_up(error)
        return None


def _options(text: str) -> Mapping[str, Any]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        diagnostics.warn_once(
            "profiling options",
            "profiling_options is no JSON object: %s" % text,
            'give e.g. {"output": "./profiling", "task_trace": "on"}',
        )
        return {}
    wrong = schemas.faults(value, schemas.PROFILING_OPTIONS)
    if wrong:
        diagnostics.warn_once(
            "profiling options %s" % text,
            "profiling_options: %s" % "; ".join(wrong),
            "what is wrong there counts as not given",
        )
    usable = {key: value[key] for key in ("output", "task_trace") if key in value}
    return {key: v for key, v in usable.items() if not schemas.faults({key: v}, schemas.PROFILING_OPTIONS)}


def _give_up(error: BaseException) -> None:
    diagnostics.warn_once(
        "profiling",
        "the session is not profiled (%s: %s)" % (type(error).__name__, error),
        "set profiling_options' output to a folder that can be written",
    )


class SessionProfiler:
    """Traces every run of one session. fetched: called with (fetches' values) after each run, for compare."""

    def __init__(self, output: str, config: Config, fetched: Optional[Callable[[Any], None]] = None):
        self.output, self.config, self.fetched = output, config, fetched
        self.writer: Optional[Writer] = None
        self.nodes: Dict[str, Any] = {}
        self._known: Set[Tuple[str, str]] = set()
        self._signatures: Set[int] = set()
        self.needs_graph, self.broken = True, False
        self._lock = threading.Lock()

    def run(self, original, session, fetches, feed_dict, options, run_metadata):
        if self.broken:
            return original(session, fetches, feed_dict, options, run_metadata)
        from tensorflow.core.protobuf import config_pb2

        traced = config_pb2.RunOptions()
        if options is not None:
            traced.CopyFrom(options)
        # More would start TF's device profiler, which has nothing to say without a GPU and says so each run.
        traced.trace_level = max(traced.trace_level, config_pb2.RunOptions.SOFTWARE_TRACE)
        # A signature has a graph of its own, which names its nodes' types.
        signature = hash("%r %r" % (fetches, sorted(map(repr, feed_dict or ()))))
        unseen = signature not in self._signatures
        traced.output_partition_graphs = traced.output_partition_graphs or self.needs_graph or unseen
        metadata = config_pb2.RunMetadata() if run_metadata is None else run_metadata
        result = original(session, fetches, feed_dict, traced, metadata)
        self._signatures.add(signature)  # a run that failed has told no graph
        try:
            with self._lock:
                self._record(metadata)
            if self.fetched is not None:
                self.fetched(result)
        except Exception as error:
            self.broken = True
            _give_up(error)
        return result

    def _record(self, metadata) -> None:
        if self.writer is None:
            soc = machine_for(self.config.soc_version).soc
            self.writer = Writer(self.output, {"soc": soc, "pid": os.getpid(), "target": self.config.target})
        for graph in metadata.partition_graphs:
            self.nodes.update((n.name, n) for n in graph.node)
        stats = [
            (device.device, n)
            for device in metadata.step_stats.dev_stats
            for n in device.node_stats
            if n.node_name not in _IGNORED and ":" not in n.node_name
        ]
        self.needs_graph = any(n.node_name not in self.nodes for _, n in stats)
        outputs = {n.node_name: _outputs(n) for _, n in stats}
        names = [n.node_name for _, n in stats]
        self.writer.add_kernels(self._kernels(names))
        self.writer.add_nodes(self._facts(names))
        self.writer.add_run([self._op(device, n, outputs) for device, n in stats])

    def _kernels(self, names) -> Dict[str, Kernel]:
        kernels = {}
        for name in names:
            node = self.nodes.get(name)
            if node is not None and node.op in FUSED and (name, node.op) not in self._known:
                self._known.add((name, node.op))
                graph = node.attr["asc_graph"].s
                kernels[name] = Kernel(_origin(graph), graph)
        return kernels

    def _facts(self, names) -> Dict[str, NodeFacts]:
        """Of the ops whose cost depends on more than dims."""
        from tf_autofuse.profiling.npu_time import is_described

        found = {}
        for name in names:
            node = self.nodes.get(name)
            if node is None or (name, node.op) in self._known or not is_described(node.op):
                continue
            self._known.add((name, node.op))
            constants = {}
            for i, word in enumerate(w for w in node.input if not w.startswith("^")):
                value = _small_value(self.nodes.get(word.partition(":")[0]))
                if value is not None:
                    constants[i] = value
            attrs = {key: _plain(value) for key, value in node.attr.items()}
            found[name] = NodeFacts({k: v for k, v in attrs.items() if v is not None}, constants)
        return found

    def _op(self, device: str, stats, outputs) -> OpRun:
        node = self.nodes.get(stats.node_name)
        mine = outputs[stats.node_name]
        inputs = []
        for word in node.input if node is not None else ():
            if word.startswith("^"):
                continue
            producer, _, number = word.partition(":")
            slots = outputs.get(producer) or _constant(self.nodes.get(producer))
            inputs.append(slots.get(int(number or 0), Tensor("", None)))
        last = max(mine) + 1 if mine else 0
        start = stats.all_start_nanos or stats.all_start_micros * 1000
        duration = (
            stats.op_end_rel_nanos - stats.op_start_rel_nanos
            if stats.op_end_rel_nanos
            else 1000 * (stats.op_end_rel_micros - stats.op_start_rel_micros)
        )
        return OpRun(
            0,
            stats.node_name,
            node.op if node is not None else "",
            device,
            stats.thread_id,
            start,
            duration,
            tuple(inputs),
            tuple(mine.get(i, Tensor("", None)) for i in range(last)),
        )


def _outputs(stats) -> Dict[int, Tensor]:
    from tensorflow.python.framework import dtypes

    found = {}
    for output in stats.output:
        description = output.tensor_description
        if description.dtype:
            name = dtypes.as_dtype(description.dtype).name.replace("_ref", "")
            found[output.slot] = Tensor(name, tuple(d.size for d in description.shape.dim))
    return found


def _constant(node) -> Dict[int, Tensor]:
    """What a Const that was not traced gives."""
    if node is None or node.op != "Const":
        return {}
    from tensorflow.python.framework import dtypes

    value = node.attr["value"].tensor
    return {0: Tensor(dtypes.as_dtype(value.dtype).name, tuple(d.size for d in value.tensor_shape.dim))}


def _small_value(node):
    """The value of a Const of few elements, which numpy has a dtype for; None for others."""
    if node is None or node.op != "Const":
        return None
    from tensorflow.python.framework import tensor_util

    proto = node.attr["value"].tensor
    elements = 1
    for dim in proto.tensor_shape.dim:
        elements *= dim.size
    value = tensor_util.MakeNdarray(proto) if elements <= MOST_ELEMENTS else None
    return value if value is not None and value.dtype.kind in "fiub" else None


def _plain(value):
    """An attribute as GraphView has it; None for kinds that no cost depends on."""
    kind = value.WhichOneof("value")
    if kind in ("b", "i", "f", "type"):
        return getattr(value, kind)
    if kind == "s":
        return value.s.decode("utf-8", "replace")
    if kind == "list" and value.list.i:
        return list(value.list.i)
    return None


def _origin(asc_graph: bytes):
    from tf_autofuse.ir import proto

    try:
        return proto.from_bytes(asc_graph).origin
    except proto.FormatError:
        return ()
