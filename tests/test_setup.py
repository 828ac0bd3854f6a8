"""The set-up of a checkout: the Python finder, the stamps, what is packed, what is pinned."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FINDER = ROOT / "scripts" / "find_python.sh"


def fake_python(path, version="3.7", bits=64, broken=False):
    """An interpreter that answers the finder's question and nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "#!/bin/sh\n"
        + (
            "echo 'pyenv: version not installed' >&2; exit 127\n"
            if broken
            else 'echo "%s %d $0"\n' % (version, bits)
        )
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def find(tmp_path):
    """find(*arguments, **environ) -> (exit code, path found or '', stderr); PATH has nothing but a shell's
    tools."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat", "tr", "env"):
        for folder in ("/bin", "/usr/bin"):
            if os.path.exists("%s/%s" % (folder, name)):
                os.symlink("%s/%s" % (folder, name), str(tools / name))
                break

    def call(*arguments, **environ):
        path = "%s:%s" % (environ.pop("PATH", tools), tools)
        done = subprocess.run(
            ["/bin/sh", str(FINDER)] + list(arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            env=dict({"PATH": path, "HOME": str(tmp_path / "home")}, **environ),
        )
        return done.returncode, done.stdout.strip(), done.stderr

    call.tools = tools
    return call


def nothing_elsewhere():
    """Whether this machine keeps no Python 3.7 in the fixed places where the finder looks last."""
    return not (
        list(Path("/opt").glob("python/cp37*"))
        + list(Path("/usr/local/bin").glob("python3.7"))
        + list(Path("/opt").glob("hostedtoolcache/Python/3.7.*"))
        + list(Path("/opt").glob("conda/envs/*"))
    )


@pytest.mark.skipif(not nothing_elsewhere(), reason="a Python 3.7 lies in a fixed place")
def test_none_says_what_to_install(find):
    code, found, told = find("3.7")
    assert code == 1 and found == ""
    for way in ("pyenv install 3.7", "uv python install 3.7", "conda create", "PYTHON37="):
        assert way in told
    assert find("--quiet", "3.7") == (1, "", "")


@pytest.mark.parametrize("name", ["python3.7", "python3", "python"])
def test_on_path(find, tmp_path, name):
    there = fake_python(tmp_path / "bin" / name)
    assert find("3.7", PATH=str(tmp_path / "bin"))[:2] == (0, str(there))


def test_a_shim_without_its_version_is_passed_over(find, tmp_path):
    fake_python(tmp_path / "shims" / "python3.7", broken=True)
    fake_python(tmp_path / "shims" / "python3", version="3.11")
    there = fake_python(tmp_path / "pyenv" / "versions" / "3.7.16" / "bin" / "python")
    assert find("3.7", PATH=str(tmp_path / "shims"), PYENV_ROOT=str(tmp_path / "pyenv"))[:2] == (
        0,
        str(there),
    )


def test_in_pyenv_of_the_home_folder(find, tmp_path):
    there = fake_python(tmp_path / "home" / ".pyenv" / "versions" / "3.7.9" / "bin" / "python")
    fake_python(tmp_path / "home" / ".pyenv" / "versions" / "3.8.1" / "bin" / "python", version="3.8")
    assert find("3.7")[:2] == (0, str(there))


def test_a_32_bit_one_does_not_do(find, tmp_path):
    fake_python(tmp_path / "bin" / "python3.7", bits=32)
    there = fake_python(tmp_path / "pyenv root" / "versions" / "3.7.1" / "bin" / "python")
    assert find("3.7", PATH=str(tmp_path / "bin"), PYENV_ROOT=str(tmp_path / "pyenv root"))[:2] == (
        0,
        str(there),
    )


def test_in_uv(find, tmp_path):
    there = fake_python(tmp_path / "uv" / "python3.7")
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        '#!/bin/sh\n[ "$*" = "python find 3.7" ] && [ "$UV_PYTHON_DOWNLOADS" = never ] && echo %s\n' % there
    )
    uv.chmod(0o755)
    assert find("3.7", PATH=str(uv.parent))[:2] == (0, str(there))


def test_in_conda(find, tmp_path):
    there = fake_python(tmp_path / "some where" / "envs" / "py37" / "bin" / "python")
    listed = tmp_path / "home" / ".conda" / "environments.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text("%s\n%s\n" % (tmp_path / "gone", tmp_path / "some where" / "envs" / "py37"))
    assert find("3.7")[:2] == (0, str(there))


def test_the_variable_comes_first_and_must_be_right(find, tmp_path):
    fake_python(tmp_path / "bin" / "python3.7")
    mine = fake_python(tmp_path / "mine" / "python")
    assert find("3.7", PATH=str(tmp_path / "bin"), PYTHON37=str(mine))[:2] == (0, str(mine))
    wrong = fake_python(tmp_path / "wrong" / "python", version="3.9")
    code, found, told = find("3.7", PATH=str(tmp_path / "bin"), PYTHON37=str(wrong))
    assert (code, found) == (1, "") and "PYTHON37" in told and "3.9" in told
    # PYTHON is a common variable: a hint, no demand
    assert find("3.7", PATH=str(tmp_path / "bin"), PYTHON=str(mine))[:2] == (0, str(mine))
    assert find("3.7", PATH=str(tmp_path / "bin"), PYTHON=str(wrong))[1].endswith("bin/python3.7")


def test_the_first_wanted_version_that_is_there(find, tmp_path):
    for version in ("3.8", "3.10"):
        fake_python(tmp_path / "bin" / ("python" + version), version=version)
    found = find("--quiet", "3.11", "3.10", "3.9", "3.8", PATH=str(tmp_path / "bin"))
    assert found[:2] == (0, str(tmp_path / "bin" / "python3.10"))


def test_stamps_notice_every_change(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    script = """
    . '%s/scripts/steps.sh'; cd '%s'
    sum=$(checksum a b); is_stamped s "$sum" && exit 10
    write_stamp s "$sum"; is_stamped s "$(checksum a b)" || exit 11
    echo more >>b; is_stamped s "$(checksum a b)" && exit 12
    exit 0
    """ % (
        ROOT,
        tmp_path,
    )
    assert subprocess.run(["/bin/sh", "-c", script]).returncode == 0


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").glob("*.sh")))
def test_scripts_are_posix_sh(script):
    assert subprocess.run(["/bin/sh", "-n", str(ROOT / "scripts" / script)]).returncode == 0


def test_another_python_is_refused_in_words():
    program = (
        "import sys; sys.version_info = (3, 9, 1, 'final', 0); sys.argv = ['setup.py', '--version']; "
        "exec(compile(open('setup.py').read(), 'setup.py', 'exec'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=str(ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "this is Python 3.9" in done.stderr and "TensorFlow 1.15.0" in done.stderr


def pins(name):
    lines = (ROOT / name).read_text().splitlines()
    return dict(
        line.lower().replace("_", "-").split("==") for line in lines if line and not line.startswith("#")
    )


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-tffree.txt"])
def test_constraints_are_exact(name):
    for line in (ROOT / name).read_text().splitlines():
        assert line.startswith("#") or re.match(r"^[A-Za-z0-9_.-]+==[0-9][0-9A-Za-z.]*$", line), line


def test_every_package_that_is_asked_for_is_pinned():
    """All that the requirements pull in on this interpreter, directly or not, as the installed packages
    say."""
    metadata = pytest.importorskip(
        "importlib_metadata" if sys.version_info < (3, 8) else "importlib.metadata"
    )
    from pip._vendor.packaging.requirements import Requirement  # packaging itself may not be installed

    full = sys.version_info[:2] == (3, 7)
    pinned = pins("constraints.txt" if full else "constraints-tffree.txt")
    files = ["requirements.txt", "requirements-dev.txt"] if full else ["requirements-tffree.txt"]
    wanted = [
        Requirement(line)
        for name in files
        for line in (ROOT / name).read_text().splitlines()
        if line and not line.startswith(("#", "-r"))
    ]
    seen = set()
    while wanted:
        requirement = wanted.pop()
        name = requirement.name.lower().replace("_", "-")
        if name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        assert name in pinned, "%s is not pinned" % name
        assert requirement.specifier.contains(pinned[name]), "%s: pinned to %s" % (requirement, pinned[name])
        wanted.extend(Requirement(text) for text in metadata.requires(requirement.name) or ())
    assert len(seen) > 15


@pytest.mark.tensorflow
def test_the_package_carries_kernel_headers_and_templates(tmp_path):
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=str(ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    assert done.returncode == 0, done.stdout
    packed = {
        str(path.relative_to(tmp_path / "tf_autofuse")) for path in tmp_path.rglob("*") if path.is_file()
    }
    for pattern in ("*.py", "*.j2", "*.proto"):
        for path in (ROOT / "tf_autofuse").rglob(pattern):
            assert str(path.relative_to(ROOT / "tf_autofuse")) in packed
    for path in (ROOT / "npu_kernels").rglob("*"):
        if path.suffix in (".h", ".cpp", ".inl"):
            assert "_npu_kernels/" + str(path.relative_to(ROOT / "npu_kernels")) in packed
    program = "from tf_autofuse.resources import npu_kernels_dir; print(npu_kernels_dir())"
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=str(tmp_path),
        stdout=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=str(tmp_path)),
    )
    assert found.stdout.strip() == str(tmp_path / "tf_autofuse" / "_npu_kernels")


def test_npu_kernels_of_a_checkout():
    from tf_autofuse.resources import npu_kernels_dir

    assert npu_kernels_dir() == ROOT / "npu_kernels"
