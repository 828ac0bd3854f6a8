"""`python -m bench [NAME...]`: runs the named measurements, or all of them."""
import importlib
import pkgutil
import platform
import sys

from rich.console import Console

import bench


def main(names) -> int:
    known = sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if not m.name.startswith("_"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print("no measurement %s; there are: %s" % (", ".join(unknown), ", ".join(known)), file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print("%s, Python %s" % (platform.platform(), platform.python_version()), highlight=False)
    for name in names or known:
        module = importlib.import_module("bench." + name)
        console.rule("%s: %s" % (name, module.__doc__.splitlines()[0]))
        module.run(console)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
