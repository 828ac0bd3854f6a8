"""From a fused graph and its kernel variants to the text of one kernel: the codegen stage as one call.

The same input gives the same bytes. On exit the device source compiles with CANN's compiler and, byte for
byte the same, with g++ against the host twin; the host source computes shapes and tilings at run time for
every shape that the graph's symbols stand for.
"""

import re
from pathlib import Path
from typing import Any, Dict, NamedTuple, Sequence

import jinja2

from tf_autofuse.codegen.abi import ABI_VERSION, MACHINE_STRUCT
from tf_autofuse.codegen.ascendc import cann
from tf_autofuse.codegen.ascendc.body import CodegenRefusal, comment
from tf_autofuse.codegen.ascendc.device import device_values, gm_names
from tf_autofuse.codegen.ascendc.lines import wrapped
from tf_autofuse.codegen.ascendc.names import entry_symbol
from tf_autofuse.codegen.ascendc.shape import shape_function
from tf_autofuse.codegen.ascendc.stages import stage_files
from tf_autofuse.codegen.sources import (
    CMAKE,
    DEVICE_SOURCE,
    HOST_SOURCE,
    TILING_HEADER,
    TWIN_SOURCE,
    KernelSources,
)
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.machine import Machine
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.nests import has_frame, nests_of
from tf_autofuse.symbolic.size import CPP_PRELUDE, to_text
from tf_autofuse.tiling.forced import forced_of
from tf_autofuse.tiling.nests import STATUS_BYTES, tiling_functions, tiling_header
from tf_autofuse.tiling.settings import settings_of

__all__ = ["CodegenRefusal", "KernelSources", "generate"]

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(str(Path(__file__).parent / "templates")),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
    autoescape=False,
)
_templates.filters["wrapped"] = lambda line, indent: ("\n" + " " * indent).join(wrapped(line, indent))


def generate(fused: FusedGraph, impls: Sequence[ImplGraph], machine: Machine, config) -> KernelSources:
    """The sources of the kernel that runs `fused` by its variants `impls` (all of one graph's, then the next
    one's).

    Raises CodegenRefusal where a node has no Ascend C form, or the variants are not those of the graphs.
    """
    try:
        nests = nests_of(fused, impls)
    except ValueError as error:
        raise CodegenRefusal(str(error))
    settings = settings_of(config)._replace(forced=forced_of(config, fused.name, nests))
    tensors = fused.inputs + fused.outputs
    base = {
        "name": comment(fused.name)[3:],
        "symbol": entry_symbol(fused.name),
        "kind": fused.kind,
        "soc": machine.soc,
        "io": [comment("%s: %s" % (n, _io_text(t))) for n, t in zip(gm_names(fused), tensors)],
    }
    files = (
        (DEVICE_SOURCE, render_text("kernel.cpp.j2", base, **device_values(fused, impls))),
        (TILING_HEADER, tiling_header(fused, impls)),
        (
            HOST_SOURCE,
            render_text(
                "host.cpp.j2",
                base,
                tiling=tiling_functions(fused, impls, settings),
                **shape_values(fused),
            ),
        ),
        (
            TWIN_SOURCE,
            render_text(
                "twin_launch.cpp.j2",
                base,
                input_count=len(fused.inputs),
                tensor_count=len(tensors),
                quoted_name=_quoted(fused.name),
                workspace_bytes="plan->workspace_bytes" if has_frame(nests) else "0",
                reports=any(n.gathers for n in nests),
                status_bytes=STATUS_BYTES,
                needs_all_blocks="true" if any(n.reads for n in nests) else "false",
            ),
        ),
        (
            CMAKE,
            render_text(
                "CMakeLists.txt.j2",
                base,
                device_flags=cann.DEVICE_FLAGS,
                keys=[str(impl.tiling_key) for impl in impls] if not has_frame(nests) else ["0"],
            ),
        ),
    )
    stages = stage_files(fused, impls) if config is not None and config.codegen_compile_debug else ()
    return KernelSources(fused.name, base["symbol"], files, fused.origin, stages)


def render_text(template: str, base: Dict[str, Any], **values: Any) -> str:
    """The text of a template below templates/."""
    rendered = _templates.get_template(template).render(dict(base, **values))
    return re.sub(r"\n{3,}", "\n\n", rendered).rstrip("\n") + "\n"


def _io_text(tensor: KernelIO) -> str:
    return "%s [%s]" % (tensor.dtype.name, ", ".join(map(to_text, tensor.dims)))


def _quoted(text: str) -> str:
    """The inside of a C string literal; never with `//` in it, which would look like a comment."""
    safe = "".join(c if 32 <= ord(c) < 127 else "?" for c in text)
    return safe.replace("\\", "\\\\").replace('"', '\\"').replace("//", "/ /").replace("??", "?")


class _CheckText(NamedTuple):
    """A check as host.cpp.j2 prints it. comment: its text and why; quoted: its text as a string's inside,
    without why, so that equal code has equal text."""

    condition: str
    number: int
    comment: str
    quoted: str


def shape_values(fused: FusedGraph) -> Dict[str, Any]:
    """The values of host.cpp.j2 for everything but the tiling."""
    shape = shape_function(fused)
    checks = [
        _CheckText(
            c.condition, c.number, comment(c.text + (" (%s)" % c.why if c.why else "")), _quoted(c.text)
        )
        for c in shape.checks
    ]
    conditions = "\n".join(c.condition for c in shape.checks)
    return {
        "definitions": [d._replace(comment=comment(d.comment)) for d in shape.definitions],
        "checks": checks,
        "out_dims": shape.out_dims,
        "sizes": shape.sizes,
        "uses_broadcasts": "Broadcasts(" in conditions,
        "uses_elements": "ElementsTimes(" in conditions,
        "abi_version": ABI_VERSION,
        "machine_struct": MACHINE_STRUCT,
        "prelude": CPP_PRELUDE,
    }
