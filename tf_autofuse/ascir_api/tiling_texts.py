"""C++ functions of the host part that write tiling data down as C++ text: GetTilingDataRepr, an expression
that builds it again, and for graphs without symbols GenConstTilingData, the header with its values as
constants.

On entry the text of the tiling data's header (tiling/nests.py: structs of numbers, and of such structs). On
exit functions for a translation unit that has AutofuseTiling."""

import re
from typing import Dict, List, Sequence, Tuple

_STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+) (\w+);", re.MULTILINE)
_ROOT = "AutofuseTilingData"
_EXPORT = 'extern "C" __attribute__((visibility("default")))'

Structs = Dict[str, List[Tuple[str, str]]]


def structs_of(header: str) -> Structs:
    """(type, name) of every field by struct, in order."""
    return {name: _FIELD.findall(body) for name, body in _STRUCT.findall(header)}


def functions(header: str, parameters: Sequence[str], guard: str) -> str:
    """parameters: the symbols that AutofuseTiling takes. guard: of the header that has the tiling data."""
    structs = structs_of(header)
    symbols = "".join("uint32_t %s, " % name for name in parameters)
    lines = [
        _EXPORT + " int64_t AutofuseTilingWithConfig(",
        "    const char* config_file, %sAutofuseTilingData* tiling, uint32_t* workspaceSize," % symbols,
        "    uint32_t* blockDim, ResLimit* limit = nullptr, int32_t tiling_case_id = -1) {",
        "  (void)config_file;  // results of measurements, of which there are none here",
        "  if (tiling_case_id >= 0) return -1;  // plans are chosen by shape, never by number",
        "  return AutofuseTiling(%stiling, workspaceSize, blockDim, limit);"
        % "".join(name + ", " for name in parameters),
        "}",
        _EXPORT + " std::string GetTilingDataRepr(const AutofuseTilingData* tiling) {",
        '  std::string text = "%s";' % _ROOT,
        *_appended(structs, _ROOT, "tiling->"),
        "  return text;",
        "}",
    ]
    if not parameters:
        lines += _constant_header(structs, guard)
    return "\n".join(lines + [""])


def _appended(structs: Structs, struct: str, place: str) -> List[str]:
    lines = ['  text += "{";']
    for number, (kind, name) in enumerate(structs[struct]):
        if number:
            lines.append('  text += ", ";')
        if kind in structs:
            lines += _appended(structs, kind, place + name + ".")
        else:
            lines.append("  text += std::to_string(%s%s);" % (place, name))
    return lines + ['  text += "}";']


def _constant_header(structs: Structs, guard: str) -> List[str]:
    lines = [
        _EXPORT + " const char* GenConstTilingData(char* config_file, int aiv_num, int ub_size) {",
        "  static std::string text;",
        "  AutofuseTilingData value = {};",
        "  const AutofuseTilingData* tiling = &value;",
        "  uint32_t workspace = 0, blocks = 0;",
        "  ResLimit limit = {};",
        "  limit.valid_num = 1;",
        "  limit.aiv_num = static_cast<uint32_t>(aiv_num);",
        "  // The framework keeps 256 bytes of UB.",
        "  limit.ub_size = ub_size > 256 ? static_cast<uint32_t>(ub_size) - 256u : 0u;",
        "  if (AutofuseTilingWithConfig(config_file, &value, &workspace, &blocks, &limit) != 0) return \"\";",
        '  text = "#ifndef %s\\n#define %s\\n#include <cstdint>\\n\\n";' % (guard, guard),
    ]
    for struct in structs:
        lines.append('  text += "struct %s {\\n";' % struct)
        for kind, name in structs[struct]:
            if kind in structs:
                lines.append('  text += "  const %s %s;\\n";' % (kind, name))
                continue
            value = "std::to_string(tiling->%s%s)" % (_path(structs, struct), name)
            lines.append('  text += "  const %s %s = " + %s + ";\\n";' % (kind, name, value))
        lines.append('  text += "};\\n";')
    lines += ['  text += "#endif  // %s\\n";' % guard, "  return text.c_str();", "}"]
    return lines


def _path(structs: Structs, struct: str) -> str:
    """Where a struct's only value lies in the tiling data."""
    if struct == _ROOT:
        return ""
    (name,) = (name for kind, name in structs[_ROOT] if kind == struct)
    return name + "."
