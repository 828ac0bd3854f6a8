"""Metadata of the distribution. How the native extension is built is native_build.py's concern.

Holds on exit: the wheel has the package, its templates, and npu_kernels/ as tf_autofuse/_npu_kernels.
"""
import os
import re
import shutil
import sys
from pathlib import Path

if sys.version_info[:2] != (3, 7):
    sys.exit(
        """
TF-AutoFuse is a plugin for TensorFlow 1.15.0, which exists for Python 3.7 and older only;
this is Python %d.%d (%s).
Install it with a Python 3.7, e.g. `python3.7 -m pip install .`; `make` in a checkout finds one or says how to
get it.
The part that needs no TensorFlow runs on Python 3.7 to 3.11 straight from a checkout.
"""
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )

from setuptools import find_packages, setup  # noqa: E402
from setuptools.command.build_py import build_py  # noqa: E402

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # a PEP 517 build does not run in the script's folder

import native_build  # noqa: E402


class BuildPy(build_py):
    """Puts npu_kernels/ into the package: generated kernels include it wherever the package is installed."""

    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            target = Path(self.build_lib) / "tf_autofuse" / "_npu_kernels"
            shutil.rmtree(str(target), ignore_errors=True)
            shutil.copytree(
                str(ROOT / "npu_kernels"), str(target), ignore=shutil.ignore_patterns("*.o", "*.so")
            )


def version():
    text = (ROOT / "tf_autofuse" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE).group(1)


def requirements():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


setup(
    name="tf-autofuse",
    version=version(),
    description="Fuses chains of light TensorFlow 1.15 ops into generated Ascend C kernels",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires="==3.7.*",
    packages=find_packages(include=["tf_autofuse", "tf_autofuse.*"]),
    package_data={"": ["**/*.j2", "**/*.proto", "**/*.json"]},
    install_requires=requirements(),
    entry_points={"console_scripts": ["tf-autofuse = tf_autofuse.cli:main"]},
    # A checkout's set-up has built it in place; pip would compile it all again in a folder of its own.
    ext_modules=[] if os.environ.get("AUTOFUSE_NATIVE_IS_BUILT") else native_build.extensions(),
    cmdclass=dict(native_build.commands(), build_py=BuildPy),
    zip_safe=False,
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C++",
        "Programming Language :: Python :: 3.7",
    ],
)
