"""Checks that need no linter installed: line lengths, Python 3.7 syntax, blanks at line ends, unused imports.

Lines of generated text (goldens, the protobuf module) may be of any length.

Exit code 1, and one line for each finding as file:line: text, if there is anything to mend.
"""
import ast
import sys
from pathlib import Path
from typing import Iterator, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tf_autofuse", "tests", "npu_kernels", "scripts", "examples", "bench")
SUFFIXES = (".py", ".h", ".cc", ".cpp", ".j2", ".sh")
WIDTH = 110
LONGEST_FILE = 600


def findings(path: Path) -> Iterator[Tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if len(lines) > LONGEST_FILE and path.suffix == ".py":
        yield len(lines), "the file has more than %d lines" % LONGEST_FILE
    generated = path.name.endswith("_pb2.py") or "golden" in path.parts
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH and not generated:
            yield number, "%d columns" % len(line)
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
    if path.suffix == ".py":
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            yield error.lineno or 0, "not Python %d.%d: %s" % (
                sys.version_info[0],
                sys.version_info[1],
                error.msg,
            )
            return
        yield from unused_imports(tree, lines, path)


def unused_imports(tree: ast.AST, lines, path: Path) -> Iterator[Tuple[int, str]]:
    if path.name in ("__init__.py", "npu_init.py", "demo.py"):  # they import for others
        return
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and "noqa" not in lines[node.lineno - 1]:
            for name in node.names:
                bound = (name.asname or name.name).split(".")[0]
                # an annotation may be a text
                if bound != "*" and bound not in used and '"%s' % bound not in "".join(lines):
                    yield node.lineno, "%s is imported but not used" % bound


def checked_files() -> List[Path]:
    """All of the project's files that the checks are for."""
    found = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.suffix in SUFFIXES]
    return found + [ROOT / "setup.py", ROOT / "native_build.py"]


def main() -> int:
    files = checked_files()
    count = 0
    for path in files:
        for number, text in findings(path):
            print("%s:%d: %s" % (path.relative_to(ROOT), number, text))
            count += 1
    print("%d files, %d findings" % (len(files), count))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
