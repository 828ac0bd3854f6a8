"""Section 12 of the API: texts to libraries."""

import ctypes
import inspect
import logging
from pathlib import Path

import numpy as np
import pytest

from tests.ascir_api.graphs import pointwise
from tf_autofuse.ascir_api import compile_adapter as adapter
from tf_autofuse.ascir_api import functional as f
from tf_autofuse.ascir_api.split_files import CompileError, HEADERS, host_files, split

pytestmark = pytest.mark.once


def text(*files):
    return "".join(
        "// AUTOFUSE_SPLIT_FILE_BEGIN: %s\n%s// AUTOFUSE_SPLIT_FILE_END: %s\n" % (k, t, k) for k, t in files
    )


def test_split_files():
    files = [("TilingHead", "a\n\nb\n"), ("one.x-2", ""), ("myTilingData", "c\n")]
    assert split(text(*files)) == files
    made = host_files(text(*files), "g")
    assert made == {
        "autofuse_tiling_func_common.h": "a\n\nb\n",
        "g_tiling_func_one.x-2.cpp": '#include "autofuse_tiling_func_common.h"\n',
    }
    newer = host_files(text(("TilingStateHeader", "s\n"), ("TilingTailHeader", "t\n"), ("u", "x\n")), "g")
    assert newer == {
        "autofuse_tiling_func_state.h": "s\n",
        "autofuse_tiling_func_tail.h": "t\n",
        "g_tiling_func_u.cpp": "x\n",
    }
    assert host_files("int x;\n", "g") == {"g_tiling_func.cpp": "int x;\n"}
    assert len(HEADERS) == 11 and HEADERS["ACubeKernelTilingWrapperHpp"] == "cube_kernel_tiling_wrapper.h"


@pytest.mark.parametrize(
    "source",
    [
        "x\n" + text(("TilingHead", "")),
        "// AUTOFUSE_SPLIT_FILE_BEGIN: TilingHead\n",
        "// AUTOFUSE_SPLIT_FILE_END: TilingHead\n",
        "// AUTOFUSE_SPLIT_FILE_BEGIN: a\n// AUTOFUSE_SPLIT_FILE_BEGIN: b\n",
        "// AUTOFUSE_SPLIT_FILE_BEGIN: a\n// AUTOFUSE_SPLIT_FILE_END: b\n",
        text(("TilingHead", ""), ("u", ""), ("u", "")),
        text(("u", "")),
        text(("TilingHead", "")),
        text(("TilingHead", ""), ("a..b", "")),
        text(("TilingHead", ""), ("a/b", "")),
        text(("TilingHead", ""), ("OtherHeader", ""), ("u", "")),
        text(("TilingHead", ""), ("OtherHpp", ""), ("u", "")),
    ],
)
def test_what_is_no_split_source(source):
    with pytest.raises(CompileError, match="split host source"):
        host_files(source, "g")


def test_graph_names():
    names = {
        "autofuse": "autofuse",
        "MyGraph": "my_graph",
        "_x": "x",
        "__x": "x",
        "3d": "t_3d",
        "a-b  c": "a_b_c",
        "HTTPServer2Go": "http_server2_go",
        "g_1": "g_1",
    }
    assert {n: adapter.graph_file_name(n) for n in names} == names


def test_signatures_and_arguments(tmp_path):
    assert list(inspect.signature(adapter.jit_compile).parameters) == [
        "tiling_def",
        "host_tiling",
        "op_kernel",
        "argv",
    ]
    assert list(inspect.signature(adapter.host_compile).parameters) == [
        "tiling_def_code",
        "tiling_impl_code",
        "argv",
    ]
    kernel = inspect.signature(adapter.kernel_compile).parameters
    assert list(kernel) == ["tiling_def_code", "kernel_impl_code", "argv", "tiling_repr"]
    assert (
        kernel["tiling_repr"].kind is inspect.Parameter.KEYWORD_ONLY and kernel["tiling_repr"].default is None
    )
    out = "--output_file=%s" % (tmp_path / "k.so")
    for argv in ([], [out, "--force_unknown=maybe"], [out, "--unknown=1"]):
        with pytest.raises(SystemExit):
            adapter.host_compile("", "", argv)
    with pytest.raises(ValueError, match="^Unsupported soc_version: Ascend310$"):
        adapter.host_compile("", "", [out, "--soc_version=Ascend310"])
    with pytest.raises(CompileError, match="Ascend950"):
        adapter.host_compile("", "", [out, "--soc_version=Ascend950"])
    for word in ("True", "1", "no", "N"):
        adapter._parsed([out, "--force_unknown=" + word])


@pytest.fixture(scope="module")
def texts():
    from tf_autofuse.ascir_api import finder, platform

    module = finder.extension()
    before = platform.current()
    module.ascir.utils.set_platform("2201", 40, 196608)
    fuser = module.Autofuser(module.AutofuserOptions())
    made = fuser.codegen(
        fuser.schedule(
            pointwise(module.ascir, 0, lambda g, x, axes: f.Relu(g, f.Neg(g, x, axis=axes), axis=axes))
        )
    )
    platform.restore(before)
    return made


def test_one_library(texts, tmp_path, caplog):
    """Tiling by AutofuseTiling, then AutofuseLaunch on the twin."""
    out, work = tmp_path / "k.so", tmp_path / "work"
    with caplog.at_level(logging.INFO, "tf_autofuse.ascir"):
        folder = adapter.jit_compile(
            *texts, ["--graph_name=MyGraph", "--output_file=%s" % out, "--output_path=%s" % work]
        )
    assert folder == str(work)
    assert {p.name for p in (work / "host").iterdir()} == {
        "autofuse_tiling_data.h",
        "autofuse_tiling_func_common.h",
        "my_graph_tiling_func_tiling_def_and_tiling_const.cpp",
    }
    assert {"autofuse_tiling_data.h", "my_graph_op_kernel.cpp"} <= {
        p.name for p in (work / "device").iterdir()
    }
    steps = {
        r.getMessage().split("/")[2]
        for r in caplog.records
        if r.getMessage().startswith("InductorCompile/jit_compile")
    }
    assert steps == {
        "PrepareCompileContext",
        "GenerateHostSource",
        "GenerateDeviceSource",
        "AscendCCompile",
        "CopyOutput",
        "Total",
    }

    library = ctypes.CDLL(str(out))
    library.GetTilingDataSize.restype = ctypes.c_size_t
    library.AutofuseLaunch.restype = library.AutofuseTiling.restype = ctypes.c_int64
    x = np.random.RandomState(2).randn(37, 50).astype(np.float32)
    y = np.zeros_like(x)
    tiling = (ctypes.c_uint64 * (library.GetTilingDataSize() // 8 + 1))()
    workspace, blocks = ctypes.c_uint32(), ctypes.c_uint32()
    assert (
        library.AutofuseTiling(
            ctypes.c_uint32(37),
            ctypes.c_uint32(50),
            ctypes.byref(tiling),
            ctypes.byref(workspace),
            ctypes.byref(blocks),
            None,
        )
        == 0
    )
    assert (
        library.AutofuseLaunch(
            blocks,
            None,
            ctypes.c_void_p(x.ctypes.data),
            ctypes.c_void_p(y.ctypes.data),
            None,
            ctypes.byref(tiling),
        )
        == 0
    )
    np.testing.assert_array_equal(y, np.maximum(-x, 0))


def test_parts_alone(texts, tmp_path):
    host, device = tmp_path / "sub" / "host.so", tmp_path / "device.so"
    folder = adapter.host_compile(texts[0], texts[1], ["--output_file=%s" % host])
    assert not Path(folder).exists()  # temporary
    adapter.kernel_compile(texts[0], texts[2], ["--output_file=%s" % device], tiling_repr="{1}")
    assert ctypes.CDLL(str(host)).AutofuseTiling and ctypes.CDLL(str(device)).AutofuseLaunch
    for path, missing in ((host, "AutofuseLaunch"), (device, "AutofuseTiling")):
        with pytest.raises(AttributeError):
            getattr(ctypes.CDLL(str(path)), missing)


def test_errors_have_the_compilers_words(texts, tmp_path):
    out = "--output_file=%s" % (tmp_path / "k.so")
    wrong = texts[1].replace("int64_t AutofuseTiling(", "nonsense AutofuseTiling(")
    with pytest.raises(CompileError, match="nonsense.*the line is") as error:
        adapter.host_compile(texts[0], wrong, [out])
    assert "my" not in str(error.value).split("\n")[0] and not (tmp_path / "k.so").exists()
    with pytest.raises(CompileError, match="no entry function"):
        adapter.kernel_compile(texts[0], "int x;", [out])
    with pytest.raises(CompileError, match="split host source"):
        adapter.host_compile(texts[0], "x\n" + texts[1], [out])
