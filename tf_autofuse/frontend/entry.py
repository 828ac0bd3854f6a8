"""The custom_optimizers entry that switches the plugin on for a session.

On exit of `configure` the ConfigProto has one entry AutofuseOptimizer whose parameter_map holds values that
are known to be good; entries of others are as they were.
"""
from typing import Any, Mapping

from tf_autofuse.config_table import NPU_ONLY, ROWS
from tf_autofuse.config_values import BadValue, meant, nearest_of
from tf_autofuse.frontend import activation

ENTRY = "AutofuseOptimizer"


def configure(config_proto, params: Mapping[str, Any]):
    """See tf_autofuse.configure."""
    try:
        entries = config_proto.graph_options.rewrite_options.custom_optimizers
    except AttributeError:
        raise TypeError(
            "configure() takes a tf.ConfigProto, not a %s" % type(config_proto).__name__
        ) from None
    for name, value in params.items():
        _check(name, value)
    activation.install()
    entry = next((e for e in entries if e.name == ENTRY), None)
    if entry is None:
        entry = entries.add()
        entry.name = ENTRY
    for name, value in params.items():
        slot = entry.parameter_map[name]
        if isinstance(value, bool):  # before int: a bool is one
            slot.b = value
        elif isinstance(value, int):
            slot.i = value
        elif isinstance(value, float):
            slot.f = value
        else:
            slot.s = value.encode("utf-8")
    return config_proto


def for_all_sessions() -> None:
    """From now on a session without an entry of ours, or without a ConfigProto, gets one as configure() makes
    it."""
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.client.session import BaseSession

    from tf_autofuse.frontend import profiler

    make_session = BaseSession.__init__

    def init_session(self, target="", graph=None, config=None):
        if config is None or profiler.parameter_map(config) is None:
            copy = config_pb2.ConfigProto()
            if config is not None:
                copy.CopyFrom(config)
            config = configure(copy, {})
        make_session(self, target, graph, config)

    BaseSession.__init__ = init_session


def _check(name: str, value: Any) -> None:
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError("%s: a setting is a bool, int, float or str, not a %s" % (name, type(value).__name__))
    rows = {key: row for row in ROWS for key in (row.parameter, row.alias) if key}
    if name in NPU_ONLY:
        return
    if name not in rows:
        nearest = nearest_of(name, list(rows) + list(NPU_ONLY))
        raise ValueError(
            "there is no setting %s in the parameter_map%s; docs/flags.md lists them all"
            % (name, meant(nearest))
        )

    def refuse(text, nearest):
        raise BadValue(text, nearest)

    try:
        rows[name].kind.parse(value, refuse)
    except BadValue as bad:
        raise ValueError(
            "%s=%s: %s%s" % (name, value, bad, meant(bad.nearest))
        ) from None
