"""The public example's graph: abs, add, relu through an optimizer entry named NpuOptimizer."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

import tf_autofuse  # noqa: F401  registers the passes
from tests.differential.harness import bit_differences, environment, executed_nodes

FLAGS = "--enable_autofuse=true;--autofuse_enable_pass=reduce,concat,slice;"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


def example_config(**parameters):
    config = tf.compat.v1.ConfigProto()
    entry = config.graph_options.rewrite_options.custom_optimizers.add()
    entry.name = "NpuOptimizer"
    entry.parameter_map["use_off_line"].b = True
    entry.parameter_map["graph_run_mode"].i = 0
    entry.parameter_map["profiling_mode"].b = True
    entry.parameter_map["profiling_options"].s = json.dumps(
        {"output": "./output", "task_trace": "on"}
    ).encode()
    for name, value in parameters.items():
        entry.parameter_map[name].s = value.encode()
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    return config


def run_example(flags, **parameters):
    """(value, nodes of the executed graph, inputs)"""
    with tf.Graph().as_default():
        data1 = tf.compat.v1.placeholder(tf.float32, [128], name="data1")
        data2 = tf.compat.v1.placeholder(tf.float32, [192, 128], name="data2")
        result = tf.nn.relu(tf.add(tf.abs(data1), data2))
        generator = np.random.RandomState(0)
        a, b = generator.randn(128).astype(np.float32), generator.randn(192, 128).astype(np.float32)
        with environment(AUTOFUSE_FLAGS=flags, AUTOFUSE_TARGET="ascend", AUTOFUSE_DFX_FLAGS=None):
            with tf.compat.v1.Session(config=example_config(**parameters)) as session:
                value, nodes = executed_nodes(session, result, {data1: a, data2: b})
                for _ in range(99):
                    again = session.run(result, {data1: a, data2: b})
                assert not bit_differences(value, again)
    return value, nodes, a, b


def fused_names(nodes):
    return [n.name for n in nodes if n.op in ("AscBackend", "FusedAscBackend")]


def test_an_inference_graph_defaults_to_float16():
    value, nodes, a, b = run_example(FLAGS)
    assert fused_names(nodes) == ["autofuse_pointwise_0_Cast_Abs_Cast_Add_Relu_Cast"]
    assert not {n.op for n in nodes} & {"Abs", "Add", "AddV2", "Relu"}
    rounded = np.abs(a.astype(np.float16).astype(np.float32)) + b.astype(np.float16).astype(np.float32)
    expected = np.maximum(rounded, 0).astype(np.float16).astype(np.float32)
    assert not bit_differences(expected, value)


def test_origin_dtype_is_bit_identical():
    value, nodes, a, b = run_example(FLAGS, precision_mode="must_keep_origin_dtype")
    assert fused_names(nodes) == ["autofuse_pointwise_0_Abs_Add_Relu"]
    plain, _, _, _ = run_example("--enable_autofuse=false")
    assert not bit_differences(plain, value)


@pytest.mark.parametrize("flags", [None, "", "--enable_autofuse=false", "--autofuse_enable_pass=reduce"])
def test_without_the_flag_the_graph_is_unchanged(flags):
    _, nodes, _, _ = run_example(flags)
    plain_config = tf.compat.v1.ConfigProto()
    plain_config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    with tf.Graph().as_default():
        data1 = tf.compat.v1.placeholder(tf.float32, [128], name="data1")
        data2 = tf.compat.v1.placeholder(tf.float32, [192, 128], name="data2")
        result = tf.nn.relu(tf.add(tf.abs(data1), data2))
        with tf.compat.v1.Session(config=plain_config) as session:
            _, plain_nodes = executed_nodes(
                session, result, {data1: np.zeros(128), data2: np.zeros((192, 128))}
            )
    assert sorted((n.name, n.op) for n in nodes) == sorted((n.name, n.op) for n in plain_nodes)


def run_script(tmp_path, **environ):
    values = dict(os.environ, AUTOFUSE_FLAGS=FLAGS, AUTOFUSE_TARGET="ascend", **environ)
    return subprocess.run(
        [sys.executable, "-m", "tf_autofuse", str(EXAMPLE)],
        cwd=str(tmp_path),
        env=values,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=300,
    )


def test_the_script_runs_unmodified(tmp_path):
    done = run_script(tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "(192, 128)" in done.stdout


def test_without_a_compiler_the_session_goes_on(tmp_path):
    done = run_script(tmp_path, PATH=str(tmp_path), CXX="", AUTOFUSE_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "(192, 128)" in done.stdout
    warnings = [line for line in done.stderr.splitlines() if "autofuse_pointwise_0" in line]
    assert len(warnings) == 1 and "compiler" in done.stderr


def test_strict_mode_turns_a_failure_into_an_error(tmp_path):
    done = run_script(tmp_path, PATH=str(tmp_path), CXX="", AUTOFUSE_CACHE_DIR=str(tmp_path / "cache"),
                      AUTOFUSE_STRICT="1")
    assert done.returncode != 0 and "compiler" in done.stderr


def cache_with_the_twin(folder):
    """A cache of its own in `folder` that has the twin's archive of the tests' cache, so that it is not built
    again."""
    mine = folder / "autofuse-cache-1"
    mine.mkdir(mode=0o700, parents=True)
    theirs = Path(os.environ.get("AUTOFUSE_CACHE_DIR", "")) / "autofuse-cache-1" / "archive"
    if "AUTOFUSE_CACHE_DIR" in os.environ and theirs.is_dir():
        shutil.copytree(str(theirs), str(mine / "archive"))
    return folder


def test_a_truncated_kernel_is_rebuilt(tmp_path):
    cache = cache_with_the_twin(tmp_path / "cache")
    assert run_script(tmp_path, AUTOFUSE_CACHE_DIR=str(cache)).returncode == 0
    kernels = sorted(cache.rglob("kernel.so"))
    assert len(kernels) == 1
    kernels[0].write_bytes(kernels[0].read_bytes()[:100])
    done = run_script(tmp_path, AUTOFUSE_CACHE_DIR=str(cache))
    assert done.returncode == 0 and "(192, 128)" in done.stdout
    assert kernels[0].stat().st_size > 100, done.stderr[-2000:]


def test_a_read_only_cache_folder_is_one_warning(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o500)
    done = run_script(tmp_path, AUTOFUSE_CACHE_DIR=str(cache))
    assert done.returncode == 0 and "(192, 128)" in done.stdout
    assert done.stderr.count("is read-only") == 1, done.stderr[-2000:]
    assert not any(cache.iterdir())
