"""Rebuilds and reruns one region alone from its debug folder, without TensorFlow: what a repro.py calls.

The sources in the folder are built as they are, so a change made by hand is what runs; --regenerate makes
them again from fused.pb. Outputs are compared with the region's meaning on numpy.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import click
import numpy as np

from tf_autofuse.build.kernels import BuildFailure, build_kernels
from tf_autofuse.codegen.ascendc.names import entry_symbol
from tf_autofuse.codegen.sources import CMAKE, COMPILED, HOST_KERNEL, HOST_TOOLS, KernelSources
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.compiler import sources_of
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.dtypes import BFLOAT16, DType
from tf_autofuse.ir.evaluate import GuardFailure, evaluate_fused
from tf_autofuse.runtime import registry
from tf_autofuse.runtime.library import KernelError
from tf_autofuse.runtime.target import ASCEND, HOST
from tf_autofuse.symbolic.guards import InputDim
from tf_autofuse.symbolic.size import evaluate

#: A dim that nobody has said: odd, so that tails are met.
UNSAID_DIM = 7


def main(folder: Path, arguments: Optional[Sequence[str]] = None) -> int:
    """The exit code: 0 where the kernel ran and agrees with numpy, 1 where not, 2 where it could not be
    tried."""
    options = _parser().parse_args(arguments)
    fused = proto.from_bytes((folder / "fused.pb").read_bytes())
    config = Config.from_sources(os.environ)
    target = HOST if (folder / HOST_KERNEL).exists() else ASCEND
    machine = target_named(target).machine(config)
    result = build_kernels([_sources(folder, fused, config, target, options.regenerate)], config)[0]
    if isinstance(result, BuildFailure):
        click.echo("not built: %s\n%s\n%s" % (result.reason, result.remedy, result.log), err=True)
        return 2
    click.echo("%s\nlibrary  %s%s" % (fused.name, result.library, " (cached)" if result.cached else ""))
    inputs = _inputs(fused, options)
    click.echo(
        "inputs   %s"
        % ", ".join("%s%s" % (t.dtype.name, list(a.shape)) for t, a in zip(fused.inputs, inputs))
    )
    try:
        outputs, info = registry.run(result, fused, inputs, machine)
        expected = evaluate_fused(fused, inputs)
    except GuardFailure as refused:
        click.echo("refused  %s (TensorFlow's own ops would run)" % refused)
        return 2
    except KernelError as error:
        click.echo("failed   %s" % error)
        return 1
    click.echo("tiling   %s" % ", ".join("%s %d" % pair for pair in info.values))
    same = True
    for i, (t, a, b) in enumerate(zip(fused.outputs, outputs, expected)):
        text, fine = _compare(t.dtype, a, b, options.tolerance)
        click.echo("output %d %s%s: %s" % (i, t.dtype.name, list(a.shape), text))
        same &= fine
    return 0 if same else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="repro.py", description=__doc__)
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="s0=8",
        help="the value of a symbol; default: the one first seen, else %d" % UNSAID_DIM,
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument(
        "--inputs", metavar="FILE.npz", help="arrays arr_0, arr_1, ... instead of random ones"
    )
    parser.add_argument("--regenerate", action="store_true", help="make the sources again from fused.pb")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, help="largest difference allowed; default: none at all"
    )
    return parser


def _sources(folder: Path, fused: FusedGraph, config: Config, target: str, regenerate: bool) -> KernelSources:
    if regenerate:
        return sources_of(fused, config, target)
    if (folder / HOST_KERNEL).exists():
        text = (folder / HOST_KERNEL).read_text(encoding="utf-8")
        return KernelSources(fused.name, entry_symbol(fused.name), ((HOST_KERNEL, text),), fused.origin,
                             tools=HOST_TOOLS)
    files = tuple((name, (folder / name).read_text(encoding="utf-8")) for name in COMPILED + (CMAKE,))
    return KernelSources(fused.name, entry_symbol(fused.name), files, fused.origin)


def _inputs(fused: FusedGraph, options) -> List[np.ndarray]:
    if options.inputs:
        with np.load(options.inputs) as arrays:
            return [arrays["arr_%d" % i] for i in range(len(fused.inputs))]
    values = _symbol_values(fused, options.size)
    random = np.random.RandomState(options.seed)
    return [random_array(t.dtype, [evaluate(d, values) for d in t.dims], random) for t in fused.inputs]


def _symbol_values(fused: FusedGraph, given: Sequence[str]) -> Dict[str, int]:
    said = dict(text.split("=", 1) for text in given)
    values: Dict[str, int] = {}
    for v in fused.sizes:
        if v.name in said:
            values[v.name] = int(said[v.name])
        elif isinstance(v.source, InputDim):
            values[v.name] = v.hint if v.hint is not None else UNSAID_DIM
        else:
            values[v.name] = evaluate(v.source, values)
    return values


def random_array(dtype: DType, dims: Sequence[int], random: np.random.RandomState) -> np.ndarray:
    """Values of every size and both signs; bfloat16 as its bits."""
    if dtype.kind == "b":
        return random.randint(0, 2, dims).astype(np.bool_)
    if dtype.is_floating:
        values = np.asarray(random.standard_normal(dims) * 2.0 ** random.randint(-3, 4, dims), np.float32)
        if dtype is BFLOAT16:
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        return values.astype(dtype.numpy)
    low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
    return random.randint(max(low, -100), min(high, 100) + 1, dims).astype(dtype.numpy)


def _compare(dtype: DType, got: np.ndarray, expected: np.ndarray, tolerance: float):
    """(what to say, whether it is fine)."""
    if got.shape != expected.shape:
        return "shape %s instead of %s" % (list(got.shape), list(expected.shape)), False
    if got.tobytes() == np.ascontiguousarray(expected).tobytes():
        return "bit-identical to numpy", True
    a, b = (x.astype(np.uint32) << 16 for x in (got, expected)) if dtype is BFLOAT16 else (got, expected)
    if dtype is BFLOAT16:
        a, b = a.view(np.float32), b.view(np.float32)
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    both_nan = np.isnan(a) & np.isnan(b)
    with np.errstate(invalid="ignore"):
        differs = ~both_nan & (a != b)
        worst = float(np.max(np.where(differs, np.abs(a - b), 0.0), initial=0.0)) if differs.any() else 0.0
    first = np.argwhere(differs)[:1].tolist()
    text = "%d of %d elements differ, by at most %.3g, first at %s" % (
        int(differs.sum()),
        got.size,
        worst,
        first[0] if first else "none",
    )
    return text, bool(worst <= tolerance)


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
