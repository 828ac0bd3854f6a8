"""python -m tests.fuzz: random graphs of mixed families against TF; see --help."""

import collections
import os
import random
import sys
from pathlib import Path

import click
from tqdm import tqdm

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@click.command()
@click.option("--graphs", default=1000, show_default=True, help="How many graphs.")
@click.option(
    "--seed", default=None, type=int, help="Of the first graph; the next ones count up. Default: random."
)
@click.option("--target", default="host", show_default=True, type=click.Choice(["host", "ascend"]))
@click.option(
    "--out", default="fuzz-failures", show_default=True, help="Folder for the scripts of failing graphs."
)
@click.option(
    "--shrink/--no-shrink", "shrinking", default=True, show_default=True, help="Make failing graphs small."
)
def main(graphs: int, seed: int, target: str, out: str, shrinking: bool) -> None:
    """Random graphs of all families, fused and compared with TensorFlow. Exit code 1 where one differs."""
    from tests.fuzz.check import check, fails, run_fused
    from tests.fuzz.generate import buildable, generate
    from tests.fuzz.recipe import script_of
    from tests.fuzz.shrink import shrink

    first = random.SystemRandom().randrange(10**8) if seed is None else seed
    click.echo("seed %d, %d graphs, target %s" % (first, graphs, target))
    kinds, failures, fallbacks, steps = collections.Counter(), [], 0, 0
    bar = tqdm(range(first, first + graphs), unit="graph", disable=None)
    for number in bar:
        recipe = buildable(generate(number))
        if not recipe.steps:
            continue
        steps += len(recipe.steps)
        outcome = check(recipe, lambda r: run_fused(r, target))
        kinds.update(name.rsplit("/", 1)[-1].split("_")[1] for name in outcome.fused)
        fallbacks += outcome.fallbacks
        if not outcome.differences:
            continue
        failures.append(number)
        small = recipe
        if shrinking:
            small = shrink(recipe, lambda r: fails(r, target))
        what = "; ".join(check(small, lambda r: run_fused(r, target)).differences or outcome.differences)
        path = Path(out) / ("seed_%d.py" % number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script_of(small, target, what))
        bar.write(
            "seed %d: %s\n  %d of %d steps are left: %s"
            % (number, what[:300], len(small.steps), len(recipe.steps), path)
        )
    click.echo(
        "%d graphs, %d steps, fused ops by kind: %s; %d calls by the fallback"
        % (graphs, steps, ", ".join("%s %d" % pair for pair in kinds.most_common()) or "none", fallbacks)
    )
    click.echo(
        "%d failures%s" % (len(failures), ": seeds %s" % ", ".join(map(str, failures)) if failures else "")
    )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
