"""Compiles every Ascend C call text of the op table against the twin, each as a probe kernel of its own.

A probe is named type:key:form. Scalar operands come from the tiling data (value[i] or number[i] for input i),
the attributes from number[3] or value[3]. Products go to a folder under the system's temporary directory
named after all sources, as the twin's own tests do it.
"""
import hashlib
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

from filelock import FileLock

from tests.twin import probes
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ops.schema import AscOp
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.symbolic.size import evaluate

TILE = 2048
PARTS = 6  # translation units: each compiles in a few seconds
ATTRIBUTES = {"negative_slope": "t.value[3]", "divisor": "int32_t(t.number[3])",
              "amount": "int32_t(t.number[3])"}


class Form(NamedTuple):
    """One call text. scalars: numbers of the inputs that are constants."""

    row: AscOp
    in_dtypes: Tuple[DType, ...]
    out_dtype: DType
    name: str
    text: str
    scalars: Tuple[int, ...]

    @property
    def probe(self) -> str:
        return ":".join((self.row.type, "-".join(d.name for d in self.in_dtypes + (self.out_dtype,)),
                         self.name))


def forms() -> Iterator[Form]:
    """All forms of all rows that work element by element; reductions are called by tests/twin."""
    from tf_autofuse.ir.dtypes import BOOL
    for row in (r for r in ASC_OPS.values() if not r.reduces):
        for key, texts in row.ascend.items():
            if row.type == "Cast":
                in_dtypes, out = (key[0],), key[1]
            else:
                in_dtypes = (BOOL, key, key) if row.type == "Where" else (key,) * row.arity
                out = BOOL if row.result == "bool" else key
            for name, text in texts.items():
                scalars = tuple(int(c) for c in name[len("scalar"):]) if name != "tensor" else ()
                yield Form(row, in_dtypes, out, name, text, scalars)


def in_place_inputs(form: Form) -> Tuple[int, ...]:
    """Numbers of the inputs that dst may be: tensors of the result's item size, where the row allows it."""
    if not form.row.in_place:
        return ()
    return tuple(i for i, d in enumerate(form.in_dtypes)
                 if i not in form.scalars and d.bytes == form.out_dtype.bytes)


def _probe(form: Form, in_place: int = -1) -> str:
    tensors = [i for i in range(len(form.in_dtypes)) if i not in form.scalars]
    names = dict(zip(tensors, "abc"))
    value = {"dst": names.get(in_place, "dst"), "tmp": "tmp", "n": "n", "T": form.in_dtypes[-1].device}
    for i, dtype in enumerate(form.in_dtypes):
        if i in form.scalars:
            source = "t.value[%d]" if dtype.is_floating else "t.number[%d]"
            value["c%d" % i] = "Scalar<%s>(%s)" % (dtype.device, source % i)
        else:
            value[str(i)] = names[i]
    for attr, text in ATTRIBUTES.items():
        value["attr_" + attr] = text
    body = re.sub(r"\{(\w+)\}", lambda m: value[m.group(1)], form.text).rstrip(";")
    if in_place >= 0:
        body += "; CopyOut(dst, %s, n)" % names[in_place]
    types = ", ".join([form.out_dtype.device] + [form.in_dtypes[i].device for i in tensors])
    tmp = evaluate(form.row.scratch_bytes(form.in_dtypes, form.out_dtype, TILE), {})
    return "PROBE%d(\"%s\", %s, %d, %s)\n" % (len(tensors), probe_name(form, in_place), types, tmp, body)


def probe_name(form: Form, in_place: int = -1) -> str:
    """The probe that runs the form, with dst in the place of that input (-1: a tensor of its own)."""
    return form.probe + (":in place %d" % in_place if in_place >= 0 else "")


_HEAD = """#include "probe.h"
%s
namespace {
template <typename T, typename V>
T Scalar(V value) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}
template <typename D, typename S>
void CopyOut(const LocalTensor<D>& dst, const LocalTensor<S>& src, uint32_t n) {
  AscendC::PipeBarrier<PIPE_V>();
  const uint32_t whole = (n * uint32_t(sizeof(D)) + 31) / 32 * 32 / uint32_t(sizeof(D));
  AscendC::DataCopy(dst, src.template ReinterpretCast<D>(), whole);
}
}  // namespace
"""


def sources(chosen: List[Form]) -> Dict[str, str]:
    """File name -> text of the translation units with a probe for each form."""
    headers = "\n".join('#include "autofuse/%s"' % h for h in sorted({f.row.header for f in chosen} - {""}))
    units = [[] for _ in range(PARTS)]
    for i, form in enumerate(sorted(chosen, key=lambda f: f.probe)):
        units[i % PARTS].append(_probe(form))
        units[i % PARTS].extend(_probe(form, k) for k in in_place_inputs(form))
    return {"forms_%d.cpp" % i: _HEAD % headers + "".join(lines) for i, lines in enumerate(units)}


def library(chosen: List[Form]) -> probes.Probes:
    """The probes of these forms, compiled once for all test runs with the same sources."""
    texts = sources(chosen)
    digest = hashlib.sha256("".join(texts[k] for k in sorted(texts)).encode())
    for folder in (probes.TWIN, probes.NPU_KERNELS / "include", probes.HERE / "kernels"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / ("autofuse-op-forms-%d" % os.getuid()) / digest.hexdigest()[:20]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "forms.so"
    with FileLock(str(folder / "lock")):
        if not target.exists():
            archive = probes.archive()
            kernels = probes.HERE / "kernels"
            for name, text in texts.items():
                (folder / name).write_text(text)
            units = [folder / name for name in sorted(texts)] + [kernels / "probe_main.cpp"]
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                objects = list(pool.map(lambda u: _compile(u, folder, kernels), units))
            part = folder / "part.so"
            _run([probes.compiler(), "-shared", *objects, archive, "-o", part, "-pthread"])
            os.replace(str(part), str(target))
    return probes.Probes(target)


def _compile(unit: Path, folder: Path, kernels: Path) -> Path:
    target = folder / (unit.stem + ".o")
    _run([probes.compiler(), *probes.KERNEL_FLAGS, "-O0", "-I%s" % kernels, "-c", unit, "-o", target])
    return target


def _run(command) -> None:
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True)
    if done.returncode:
        raise RuntimeError("%s\n%s" % (" ".join(map(str, command)), done.stdout[:4000]))
