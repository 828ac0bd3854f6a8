"""The stages before codegen as files of a debug folder: what flowed at each arrow, as text that a person can
read."""

from typing import List, Sequence, Tuple

from tf_autofuse.ir import proto, text
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.nests import nests_of
from tf_autofuse.symbolic.size import to_text
from tf_autofuse.tiling import formula
from tf_autofuse.tiling.nests import tiling_fields
from tf_autofuse.tiling.model import TilingModel, build_model

#: The fused graph itself, for repro.py.
FUSED = "fused.pb"


def stage_files(fused: FusedGraph, impls: Sequence[ImplGraph]) -> Tuple[Tuple[str, bytes], ...]:
    """(file name, contents): hint.txt, fused.pb, impl_<key>.txt for each variant (impl_<nest>_<key>.txt where
    there are several nests), tiling.txt."""
    files: List[Tuple[str, bytes]] = [
        ("hint.txt", text.dump(fused).encode("utf-8")),
        (FUSED, proto.to_bytes(fused)),
    ]
    nests = nests_of(fused, impls)
    lines = ["tiling data: " + ", ".join("%s %s" % (f.type, f.name) for f in tiling_fields(fused, impls))]
    for nest in nests:
        for impl in nest.impls:
            number = "%d_%d" % (nest.number, impl.tiling_key) if len(nests) > 1 else str(impl.tiling_key)
            described = "%s\n\n%s" % (impl.describe(), text.dump(impl.graph))
            files.append(("impl_%s.txt" % number, described.encode("utf-8")))
            lines += [""] + _tiling_lines(build_model(impl))
    return tuple(files + [("tiling.txt", ("\n".join(lines) + "\n").encode("utf-8"))])


def _tiling_lines(model: TilingModel) -> List[str]:
    lines = [
        "key %d: %s" % (model.key, model.template),
        "  variables: %s of %s (a multiple of %d, of %d where it is larger), %s"
        % (model.tile_symbol, to_text(model.cut), model.align, model.line, model.block_symbol),
        "  outer %s, inner %s" % (to_text(model.outer), to_text(model.inner)),
    ]
    if model.conditions:
        lines.append("  applies where " + " and ".join(map(repr, model.conditions)))
    for c in model.containers:
        lines.append("  UB  %d x %s  %s" % (c.buf_num, " | ".join(map(to_text, c.sizes)), c.field))
    if model.tmp_bytes:
        lines.append("  UB  %s  scratch" % " | ".join(map(to_text, model.tmp_bytes)))
    if model.reserved:
        lines.append("  UB  %d  reserved by the instructions" % model.reserved)
    lines += [
        "  limit  %s <= %d  %s" % (to_text(limit.value), limit.bound, limit.why) for limit in model.limits
    ]
    return lines + ["  cost  " + formula.text(model.cost)]
