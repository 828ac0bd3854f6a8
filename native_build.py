"""Builds the native extension tf_autofuse/frontend/_native: graph passes, AscBackend op, Python module.

setup.py imports it: `ext_modules=extensions()`, `cmdclass=dict(commands())`. TensorFlow and
pybind11 are asked for their headers only when something is really built. On exit of a build the one shared
library lies in tf_autofuse/frontend (in place) or in the build tree; objects that are newer than their source
and its headers are kept.
"""

import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from setuptools import Extension
from setuptools.command.build_ext import build_ext

ROOT = os.path.dirname(os.path.abspath(__file__))
NATIVE = os.path.join("tf_autofuse", "frontend", "native")
MODULE = "tf_autofuse.frontend._native"
#: Headers that the extension shares with what is built where it runs.
SHARED = os.path.join("npu_kernels", "runtime")

_FLAGS_PROGRAM = (
    "import json, pybind11, tensorflow as tf; print(json.dumps([tf.version.VERSION, "
    "tf.sysconfig.get_compile_flags() + ['-I' + pybind11.get_include()], tf.sysconfig.get_link_flags()]))"
)


def _relative(pattern):
    return sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, NATIVE, pattern)))


def extensions():
    """For setup(ext_modules=...); paths are relative to the project's root as setuptools wants them."""
    return [Extension(MODULE, sources=_relative("*.cc"), depends=_relative("*.h"), language="c++")]


def commands():
    """For setup(cmdclass=...)."""
    return {"build_ext": BuildNative}


def _with_headers(path, found=None):
    """The file and all headers of its folder, and of SHARED, that it includes, directly or not."""
    found = {path} if found is None else found
    with open(path, encoding="utf-8") as source:
        names = re.findall(r'^#include "([^"/]+)"', source.read(), re.MULTILINE)
    for name in names:
        for folder in (os.path.dirname(path), os.path.join(ROOT, SHARED)):
            header = os.path.join(folder, name)
            if os.path.exists(header) and header not in found:
                found.add(header)
                _with_headers(header, found)
    return found


def _tensorflow_flags():
    """(compile flags, link flags) of the installed TensorFlow. RuntimeError says what to install."""
    environ = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FLAGS_PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=environ,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(
            "the native extension needs tensorflow==1.15.0 and pybind11 in this environment (%s): %s"
            % (sys.executable, lines[-1] if lines else "no reason given")
        )
    version, compile_flags, link_flags = json.loads(done.stdout.strip().splitlines()[-1])
    if not version.startswith("1.15."):
        raise RuntimeError("the native extension is for TensorFlow 1.15, not %s" % version)
    return compile_flags, link_flags


class BuildNative(build_ext):
    """build_ext that compiles file by file, some at a time (AUTOFUSE_BUILD_JOBS, default: the processors)."""

    def build_extension(self, ext):
        if ext.name != MODULE:
            super().build_extension(ext)
            return
        compile_flags, link_flags = _tensorflow_flags()
        # The GNU flavour of names as TensorFlow was built; C++14 as its headers need.
        # numpy's and TensorFlow's headers are not ours to warn about.
        flags = [
            "-std=c++14",
            "-O2",
            # Python's own flags ask for debug information: four fifths of the library, a third of the time.
            "-g0",
            "-fvisibility=hidden",
            "-fno-strict-aliasing",
            "-Wall",
            "-Wno-sign-compare",
        ]
        flags.append("-I" + os.path.join(ROOT, SHARED))
        flags += [
            flag.replace("-I", "-isystem", 1) if flag.startswith("-I") else flag for flag in compile_flags
        ]
        jobs = int(os.environ.get("AUTOFUSE_BUILD_JOBS") or os.cpu_count() or 1)
        with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
            objects = list(
                pool.map(lambda source: self._object(ext, source, flags), ext.sources)
            )
        target = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # TensorFlow is always imported first, so its library is found by its name.
        self.compiler.link_shared_object(
            objects, target, extra_postargs=link_flags + ["-ldl"], target_lang="c++"
        )

    def _object(self, ext, source, flags):
        (target,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        inputs = _with_headers(os.path.join(ROOT, source)) | {os.path.abspath(__file__)}
        fresh = max(os.path.getmtime(path) for path in inputs)
        if not self.force and os.path.exists(target) and os.path.getmtime(target) > fresh:
            return target
        self.announce("compiling %s" % source, level=2)
        self.compiler.compile([source], output_dir=self.build_temp, extra_postargs=flags, depends=ext.depends)
        return target
