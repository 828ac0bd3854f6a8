"""Where the files lie that come with the package but are not Python: npu_kernels/, the sources kernels
include."""
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def npu_kernels_dir() -> Path:
    """The npu_kernels folder: beside the package in a checkout, inside it where it is installed.

    Raises FileNotFoundError, with a remedy, where neither is there.
    """
    for folder in (_PACKAGE / "_npu_kernels", _PACKAGE.parent / "npu_kernels"):
        if (folder / "include").is_dir():
            return folder
    raise FileNotFoundError(
        "the folder npu_kernels is missing beside %s; install tf-autofuse again" % _PACKAGE
    )
