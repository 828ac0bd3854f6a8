"""Shows settings: those in force with their origins as a table or JSON, and all of them as docs/flags.md."""
import json
from typing import List

from rich.console import Console
from rich.table import Table

from tf_autofuse.config import Config
from tf_autofuse.config_table import (
    DFX,
    DFX_ROWS,
    ENVIRONMENT,
    ENVIRONMENT_ROWS,
    FLAG_ROWS,
    FLAGS,
    LATER,
    NONE,
    NPU_ONLY,
    PARAMETERS,
    PARAMETER_ROWS,
    ROWS,
    Row,
)


def render(config: Config, console: Console) -> None:
    """Every value with its origin, values that were set in bold, then the problems."""
    for title, rows in (
        (FLAGS, FLAG_ROWS),
        (DFX, DFX_ROWS),
        (ENVIRONMENT, ENVIRONMENT_ROWS),
        (PARAMETERS, PARAMETER_ROWS),
    ):
        table = Table("setting", "value", "origin", title=title, title_justify="left", expand=False)
        for row in rows:
            origin = config.origins[row.field]
            table.add_row(
                row.key,
                _shown(row, config) or "(unset)",
                origin,
                style="bold" if origin != "default" else None,
            )
        console.print(table)
    for problem in config.problems:
        console.print(
            ("error" if problem.is_error else "note") + ": " + problem.text,
            markup=False,
            highlight=False,
            style="yellow" if problem.is_error else None,
            soft_wrap=True,
        )
    if not config.problems:
        console.print("No problems: every setting was taken as written.")


def as_json(config: Config) -> str:
    """{settings: {key: {field, value, origin, place, effect}}, skip: {...}, problems: [...]}, keys as the
    user writes them."""
    settings = {
        row.key: {
            "field": row.field,
            "value": getattr(config, row.field),
            "origin": config.origins[row.field],
            "place": row.place,
            "effect": row.effect,
        }
        for row in ROWS
    }
    problems = [
        {
            "kind": p.kind,
            "name": p.name,
            "given": p.given,
            "used": p.used,
            "nearest": p.nearest,
            "text": p.text,
        }
        for p in config.problems
    ]
    skip = {"names": config.skip_list.names, "types": config.skip_list.types}
    return json.dumps({"settings": settings, "skip": skip, "problems": problems}, indent=2)


def _shown(row: Row, config: Config) -> str:
    return row.kind.show(getattr(config, row.field))


def flags_document() -> str:
    """The text of docs/flags.md."""
    lines: List[str] = [
        "# Settings",
        "",
        "Made from `tf_autofuse/config_table.py` by `python -m tf_autofuse docs flags`; don't edit.",
        "",
    ]
    lines += _wrapped(
        "Where a setting is made in several places, the strongest wins: the session's `parameter_map`, then "
        "the API (`Config.from_sources(..., api=...)`), then the environment, then the default. A value that"
        " is not allowed counts as not given. Whatever is not taken as written is reported once in a "
        "process, with the nearest valid name or value; `AUTOFUSE_STRICT=1` makes an error of it. `python -m"
        " tf_autofuse config` prints what is in force, and from where."
    )
    lines.append("")
    lines += _wrapped(
        "Effect: *now*, or *later* (read and checked, but without effect in this version; it says so when it"
        " is set), or *none* (it belongs to another part of CANN)."
    )
    lines += _section(
        FLAGS,
        FLAG_ROWS,
        "One variable: `--name=value` separated by `;`, the `--` may be left out. Each may also stand "
        "in the `parameter_map` under the same name.",
    )
    lines += _section(
        DFX,
        DFX_ROWS,
        "The same form, for development and debugging. A name of one variable in the other is understood, "
        "with a note.",
    )
    lines += _section(
        "Variables of their own",
        ENVIRONMENT_ROWS,
        "An empty variable counts as not set. Read when a graph is optimized.",
    )
    lines += _section(
        PARAMETERS,
        PARAMETER_ROWS,
        "`custom_op.parameter_map[name]` of the `custom_optimizers` entry in ConfigProto, or "
        "`tf_autofuse.configure(config_proto, name=value)`.",
    )
    lines += ["", "## Options of the NPU route without effect here", ""]
    lines += _wrapped(
        "Accepted in the `parameter_map`, so that scripts for the NPU run unchanged; `AUTOFUSE_VERBOSE=1` "
        "names the ones that are set."
    )
    lines.append("")
    lines += _wrapped(", ".join("`%s`" % name for name in NPU_ONLY))
    return "\n".join(lines) + "\n"


def _section(title: str, rows, text: str) -> List[str]:
    lines = ["", "## %s" % title, ""] + _wrapped(text)
    lines += _table([row for row in rows if row.effect != LATER])
    later = [row for row in rows if row.effect == LATER]
    if later:
        lines += ["", "Read and checked, but without effect yet:"] + _table(later)
    return lines


def _table(rows) -> List[str]:
    lines = ["", "| name | value | default | effect | meaning |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            "| %s | %s | %s | %s | %s |"
            % (
                _names(row),
                _cell(row.kind.allowed),
                _cell(row.kind.show(row.default)) or "unset",
                _effect(row),
                _cell(row.meaning),
            )
        )
    return lines


def _names(row: Row) -> str:
    names = "`%s`" % row.key
    if row.alias:
        names += ", `%s`" % row.alias
    if row.parameter and row.parameter != row.key:
        names += " (`%s` in the parameter_map)" % row.parameter
    return names


def _effect(row: Row) -> str:
    if row.effect in (LATER, NONE):
        return row.effect
    return "now" + ("; later for %s" % ", ".join(row.later) if row.later else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _wrapped(text: str, width: int = 110) -> List[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > width and lines[-1]:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines
