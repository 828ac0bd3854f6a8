"""TensorFlow, XLA, this plugin, Inductor, JAX and hand-written C side by side: `python -m bench.suite`."""


def run(console):
    """The short settings; `python -m bench.suite --write` measures for docs/performance.md."""
    from bench.suite.main import measure
    from bench.suite.harness import QUICK
    measure(QUICK._replace(models=False), console.print)
