"""Writes tf_autofuse/tiling/helper_costs.py: what each call of a device helper costs, from the instructions
it issues.

Every helper form of the op table runs on the twin over two counts of elements; the published costs of the
recorded instructions are summed, and the line through the two sums is the cost. Run it after a change of a
helper or of cost_table.py: `python scripts/derive_helper_costs.py`.
"""
import ctypes
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from tests.ops import ascend_forms, values  # noqa: E402
from tf_autofuse.codegen.abi import TraceRecord  # noqa: E402
from tf_autofuse.ir.dtypes import BOOL  # noqa: E402
from tf_autofuse.profiling.instructions import vector_cycles  # noqa: E402
from tf_autofuse.runtime.library import traced  # noqa: E402

COUNTS = (256, 2048)
TARGET = ROOT / "tf_autofuse" / "tiling" / "helper_costs.py"
HEAD = '''"""Derived costs of device helpers: cycles = k * elements + b for one call.

Written by scripts/derive_helper_costs.py: the sum of the published costs (cost_table.py) of the instructions
that the helper issues for %d and for %d elements, and the line through both. Loops over chunks of a larger
tile are in k.
"""
from typing import Dict, Tuple

#: (AscIR type, dtype of the last input, or 'source->target' of a Cast) -> (k, b).
HELPERS: Dict[Tuple[str, str], Tuple[float, float]] = {
''' % COUNTS


def helper_forms():
    """The forms with tensors only that call a helper."""
    return [f for f in ascend_forms.forms() if f.name == "tensor" and "autofuse::" in f.text]


def key_of(form):
    source = form.in_dtypes[-1].name
    return form.row.type, "%s->%s" % (source, form.out_dtype.name) if form.row.type == "Cast" else source


def cycles(run, form, count):
    """Cycles of the vector instructions that the form issues on `count` elements."""
    given = []
    for i, dtype in enumerate(form.in_dtypes):
        array = values.random(dtype, count, i)
        given.append(array.astype(np.uint8) if dtype is BOOL else array)
    out = np.uint8 if form.out_dtype is BOOL else form.out_dtype.numpy
    run.lib.twin_trace_end.restype = ctypes.c_uint64
    run.lib.twin_trace_begin(ctypes.c_uint64(0))
    records = ctypes.POINTER(TraceRecord)()
    try:
        run(ascend_forms.probe_name(form), out, *given, numbers=[3] * 4, values=[3.0] * 4)
    finally:
        n = run.lib.twin_trace_end(ctypes.byref(records))
    return sum(vector_cycles(r.api, r.dtype, r.elements) for r in map(traced, records[:n])
               if r.kind == "instruction" and r.pipe == "V")


def line(run, form):
    few, many = (cycles(run, form, n) for n in COUNTS)
    k = (many - few) / (COUNTS[1] - COUNTS[0])
    return k, few - k * COUNTS[0]


def main() -> None:
    run = ascend_forms.library(list(ascend_forms.forms()))
    rows = {key_of(form): line(run, form) for form in helper_forms()}
    lines = ["    (%s): (%.4f, %.1f),\n" % (", ".join('"%s"' % part for part in key), k, max(b, 0.0))
             for key, (k, b) in sorted(rows.items())]
    TARGET.write_text(HEAD + "".join(lines) + "}\n")
    print("%d helpers in %s" % (len(rows), TARGET.relative_to(ROOT)))


if __name__ == "__main__":
    main()
