"""What fusion does to the public example, step by step: `make demo` runs this.

A TF 1.15 graph, relu(abs(data1) + data2), is run by TensorFlow alone and with the plugin. Shown are the
machine, the region that was found, the fused op, its Ascend C source, the tiling, the check against
TensorFlow, and the time; then the same for the host target's C kernel, which is what runs by default
where there is no NPU.
"""
import argparse
import os
import platform
import statistics
import sys
import time

import numpy as np

os.environ.setdefault("AUTOFUSE_FLAGS", "--enable_autofuse=true;--autofuse_enable_pass=reduce,concat,slice;")
os.environ.setdefault("AUTOFUSE_TARGET", "ascend")
os.environ.setdefault("AUTOFUSE_BUILD", "sync")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import tf_autofuse  # noqa: E402
from tf_autofuse.frontend import plugin  # noqa: E402
from tf_autofuse.report import journal  # noqa: E402
from tf_autofuse.machine import machine_for, usable_ub  # noqa: E402
from tf_autofuse.runtime import registry  # noqa: E402

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
RUNS = 100


def build():
    data1 = tf.compat.v1.placeholder(tf.float32, [128], name="data1")
    data2 = tf.compat.v1.placeholder(tf.float32, [192, 128], name="data2")
    return data1, data2, tf.nn.relu(tf.add(tf.abs(data1), data2))


def run(config, feed_values):
    """(result, median seconds of a call) of the graph under a ConfigProto."""
    with tf.Graph().as_default():
        data1, data2, result = build()
        with tf.compat.v1.Session(config=config) as session:
            call = session.make_callable(result, [data1, data2])
            value = call(*feed_values)
            times = []
            for _ in range(RUNS):
                start = time.perf_counter()
                call(*feed_values)
                times.append(time.perf_counter() - start)
    return value, statistics.median(times)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    out = Console(width=max(120, Console().width))
    out.rule("TF-AutoFuse: relu(abs(data1[128]) + data2[192,128])")
    machine = machine_for()
    out.print("host      %s, %d cores, Python %s, TensorFlow %s" % (
        platform.machine(), os.cpu_count(), platform.python_version(), tf.__version__))
    out.print(
        "kernel    for %s: %d vector cores, %d KiB UB each; run here on the host twin of the Ascend C API"
        % (machine.soc, machine.vector_cores, machine.ub_bytes // 1024)
    )

    generator = np.random.RandomState(0)
    feed = generator.randn(128).astype(np.float32), generator.randn(192, 128).astype(np.float32)
    plain, plain_seconds = run(tf.compat.v1.ConfigProto(), feed)
    ok = True
    for mode, title in (("must_keep_origin_dtype", "computed in float32, as in the graph"),
                        (None, "inference on the NPU route: computed in float16 (force_fp16)")):
        out.rule(title)
        journal.clear()
        parameters = dict({"precision_mode": mode} if mode else {}, graph_run_mode=0)
        fused, fused_seconds = run(tf_autofuse.configure(tf.compat.v1.ConfigProto(), **parameters), feed)
        ok &= show(out, machine, plain, fused, plain_seconds, fused_seconds, exact=mode is not None)
    out.rule("host target: C for this machine's CPU")
    os.environ["AUTOFUSE_TARGET"] = "host"
    journal.clear()
    fused, fused_seconds = run(tf_autofuse.configure(tf.compat.v1.ConfigProto(), graph_run_mode=0), feed)
    ok &= show_host(out, plain, fused, plain_seconds, fused_seconds)
    out.rule()
    out.print("[bold green]OK[/]" if ok else "[bold red]FAILED[/]: see the lines above")
    return 0 if ok else 1


def show(out, machine, plain, fused, plain_seconds, fused_seconds, exact) -> bool:
    records = [r for r in journal.records() if r.fused_names]
    if not records:
        out.print("[red]nothing was fused[/]; `tf-autofuse doctor` says what is missing")
        return False
    compiled = records[-1].compilation.compiled[0]
    region, binary = compiled.region, compiled.binary
    out.print("region    %d TF nodes: %s" % (len(region.nodes), ", ".join(region.fused.origin)))
    out.print("fused op  [bold]%s[/] (%s)" % (region.fused.name, region.fused.op_type))
    out.print("source    %s" % binary.source_path, soft_wrap=True)
    stats = plugin.native().stats()[binary.key]
    table = Table("tiling key", "template", "cut", "in UB", title=None)
    for impl in compiled.scheduled:
        axis = impl.graph.axis
        table.add_row(
            str(impl.tiling_key),
            "%s, %s" % (impl.template, impl.variant),
            axis(impl.cut_axis).name,
            ", ".join("%s" % axis(a).name for a in impl.vectorized_axes),
        )
    out.print(table)
    dims = [tuple(t.dims) for t in region.fused.inputs]
    library = registry.library_of(binary, region.fused)
    chosen = library.tiling(library.shape(dims).sizes, machine.vector_cores, usable_ub(machine, False))
    out.print(
        "tiling    inputs %s: %s"
        % (
            " ".join(map(str, dims)),
            ", ".join(
                "%s %d" % (name, value)
                for name, value in chosen.values
                if name != "unused" and not name.endswith("_bytes")
            ),
        )
    )
    out.print("UB        %s" % ", ".join("%s %d B" % (c.name, chosen.value(c.field) * c.buf_num)
                                         for c in compiled.scheduled[chosen.value("tiling_key")].containers))
    out.print("calls     %d by the kernel, %d by the fallback" % (
        stats["calls"] - stats["fallbacks"], stats["fallbacks"]))
    worst = float(np.max(np.abs(plain.astype(np.float64) - fused)))
    same = plain.tobytes() == fused.tobytes()
    bound = 0.0 if exact else float(np.max(np.abs(plain))) * 2.0 ** -10
    out.print(
        "check     against TensorFlow in float32: %s"
        % (
            "bit-identical"
            if same
            else "largest difference %.3g (float16 rounding allows %.3g)" % (worst, bound)
        )
    )
    out.print(
        "time      %.0f us a call, TensorFlow alone %.0f us (medians of %d; the twin checks every access, "
        "it is no measure of an NPU)" % (fused_seconds * 1e6, plain_seconds * 1e6, RUNS)
    )
    return stats["fallbacks"] == 0 and (same if exact else worst <= bound)


def show_host(out, plain, fused, plain_seconds, fused_seconds) -> bool:
    records = [r for r in journal.records() if r.fused_names]
    if not records:
        out.print("[red]nothing was fused[/]; `tf-autofuse doctor` says what is missing")
        return False
    compiled = records[-1].compilation.compiled[0]
    machine = records[-1].compilation.machine
    binary, graph = compiled.binary, compiled.region.fused
    out.print("fused op  [bold]%s[/] for %s, %d cores" % (graph.name, machine.model, machine.cores))
    out.print("source    %s" % binary.source_path, soft_wrap=True)
    library = registry.library_of(binary, graph)
    chosen = library.tiling(
        library.shape([tuple(t.dims) for t in graph.inputs]).sizes, *machine.launch_limits
    )
    out.print("tiling    %d blocks of about %.1f us" % (chosen.block_dim, library.block_cost(chosen) / 1e3))
    same = plain.tobytes() == fused.tobytes()
    stats = plugin.native().stats()[binary.key]
    out.print("check     against TensorFlow: %s" % ("bit-identical" if same else "[red]different[/]"))
    out.print("time      %.0f us a call, TensorFlow alone %.0f us (medians of %d)" % (
        fused_seconds * 1e6, plain_seconds * 1e6, RUNS))
    return same and stats["fallbacks"] == 0


if __name__ == "__main__":
    sys.exit(main())
