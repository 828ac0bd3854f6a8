"""What a script gets from `from npu_bridge.npu_init import *` where no npu_bridge is installed.

Why: a script that was written for the NPU should run unchanged on a machine without one. Present and working
are the names of TensorFlow that such scripts use without importing them, the functions that prepare a
session's config, and the rank functions of a single process. Whatever trains, communicates or runs on a
device is a `Refusal`: it may be imported, and says what it is and what to do when it is used.
"""
import atexit
import os

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import session

ENTRY = "NpuOptimizer"


class NpuBridgeMissing(ImportError):
    """A part of npu_bridge was used that only the real one, on a machine with an NPU, has."""


class Refusal:
    """Stands for a class, function or module of the real npu_bridge. Any use of it raises
    NpuBridgeMissing."""

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def _refuse(self):
        raise NpuBridgeMissing(
            "%s needs the real npu_bridge, which is not installed here; TF-AutoFuse stands in only for "
            "session configuration. Install CANN's TF Adapter on a machine with an NPU, or leave this "
            "part of the script out"
            % self.__dict__["_name"]
        )

    def __call__(self, *args, **kwargs):
        self._refuse()

    def __getattr__(self, name):
        # Python itself asks for dunder names (copy, inspect, pytest); these are simply absent.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __setattr__(self, name, value):
        self._refuse()

    def __mro_entries__(self, bases):
        self._refuse()

    def __instancecheck__(self, instance):
        return False

    def __subclasscheck__(self, subclass):
        return False

    def __repr__(self):
        return "<%s: not available without an NPU>" % self.__dict__["_name"]


REFUSED = (
    "DumpConfig",
    "DynamicInputConfig",
    "ExponentialUpdateLossScaleManager",
    "FixedLossScaleManager",
    "KerasDistributeOptimizer",
    "NPUBroadcastGlobalVariablesHook",
    "NPUCheckpointSaverHook",
    "NPUDistributedOptimizer",
    "NPUEstimator",
    "NPUEstimatorSpec",
    "NPULossScaleOptimizer",
    "NPUOptimizer",
    "NPUOutputTensorHook",
    "NPURunConfig",
    "ProfilingConfig",
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_world_rank_from_group_rank",
    "hccl_ops",
    "init_resource",
    "keras_to_npu",
    "npu_ops",
    "npu_rnn",
    "npu_scope",
    "npu_strategy",
    "npu_unary_ops",
    "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
    "shutdown_resource",
    "util",
)

globals().update({name: Refusal("npu_bridge's " + name) for name in REFUSED})


def npu_config_proto(config_proto=None):
    """The tf.ConfigProto (a new one for None), with the settings that the NPU route asks of TensorFlow."""
    config = config_proto if isinstance(config_proto, config_pb2.ConfigProto) else config_pb2.ConfigProto()
    config.allow_soft_placement = True
    config.log_device_placement = False
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    npu_graph_options(config.graph_options)
    return config


def npu_session_config_init(session_config=None):
    """npu_config_proto, with a custom_optimizers entry NpuOptimizer."""
    config = npu_config_proto(session_config)
    config.graph_options.rewrite_options.custom_optimizers.add().name = ENTRY
    return config


def npu_run_config_init(run_config=None):
    """A tf.estimator.RunConfig whose sessions have npu_session_config_init's config."""
    config = run_config if isinstance(run_config, tf.estimator.RunConfig) else tf.estimator.RunConfig()
    return config.replace(session_config=npu_session_config_init(config.session_config))


def npu_graph_options(graph_options=None):
    """The tf.GraphOptions (new ones for None) with XLA's auto-jit off."""
    options = (
        graph_options if isinstance(graph_options, config_pb2.GraphOptions) else config_pb2.GraphOptions()
    )
    npu_optimizer_options(options.optimizer_options)
    return options


def npu_optimizer_options(optimizer_options=None):
    """The tf.OptimizerOptions (new ones for None) with XLA's auto-jit off."""
    known = isinstance(optimizer_options, config_pb2.OptimizerOptions)
    options = optimizer_options if known else config_pb2.OptimizerOptions()
    options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return options


def npu_hooks_append(hooks_list=None):
    """The hooks as they are: the hook that the real one adds broadcasts variables to other processes; here is
    one."""
    return hooks_list if isinstance(hooks_list, list) else []


def set_keras_session_npu_config():
    """Makes a session with npu_session_config_init's config Keras' session, and returns it."""
    made = session.Session(config=npu_session_config_init())
    tf.keras.backend.set_session(made)
    return made


def close_session(sess):
    sess.close()


def npu_close():
    """Nothing to close: no device was opened."""


def _constant(name, value):
    def rank_function(*group):
        return value

    rank_function.__name__ = name
    rank_function.__doc__ = "%d: this process is the only one." % value
    return rank_function


_RANKS = {
    "get_rank_id": 0,
    "get_local_rank_id": 0,
    "get_rank_size": 1,
    "get_local_rank_size": 1,
    "get_npu_rank_id": 0,
    "get_npu_local_rank_id": 0,
    "get_npu_rank_size": 1,
}
globals().update({name: _constant(name, value) for name, value in _RANKS.items()})

__all__ = sorted(
    [
        "RewriterConfig",
        "atexit",
        "close_session",
        "config_pb2",
        "npu_close",
        "npu_config_proto",
        "npu_graph_options",
        "npu_hooks_append",
        "npu_optimizer_options",
        "npu_run_config_init",
        "npu_session_config_init",
        "os",
        "rewriter_config_pb2",
        "session",
        "set_keras_session_npu_config",
        "tf",
    ]
    + list(_RANKS)
    + list(REFUSED)
)
