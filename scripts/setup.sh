#!/bin/sh
# Sets up a checkout: Python 3.7, a virtual environment, pinned packages, the native extension in place.
# setup.sh FOLDER_OF_THE_ENVIRONMENT; each step is skipped while what it was made from has not changed.
set -eu
cd "$(dirname "$0")/.."
. scripts/steps.sh

venv=$1
python=$venv/bin/python
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1

# Shows the files as they are compiled; the compiler's own lines only if it fails.
build_native() {
    mkdir -p build
    {
        status=0
        "$python" setup.py build_ext --inplace 2>&1 || status=$?
        echo "$status" >build/native.status
    } | tee build/native.log | sed -n 's/^compiling /    compiling /p'
    [ "$(cat build/native.status)" = 0 ] && return 0
    grep -v -E '^(gcc|g\+\+|x86_64-linux-gnu-g.*) ' build/native.log | tail -n 40 >&2
    return 1
}

machine=$(uname -sm)
[ "$machine" = "Linux x86_64" ] ||
    die "TensorFlow 1.15.0 is published for Linux on x86_64 only; this machine is $machine."

step "1/4 Python 3.7"
if [ -x "$python" ]; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo broken)
    [ "$version" = 3.7 ] ||
        die "$venv is not a Python 3.7 environment (it is: $version). Remove it, then run make again."
    done_step "$("$python" -V 2>&1) in $venv"
else
    found=$(sh scripts/find_python.sh 3.7) || exit 1
    [ -e "$venv" ] && die "$venv exists but holds no Python. Remove it, then run make again."
    new_environment "$found" "$venv"
    done_step "$("$python" -V 2>&1) from $found, new environment in $venv"
fi

step "2/4 packages (TensorFlow is a download of 400 MB the first time)"
wanted=$(checksum requirements.txt requirements-dev.txt constraints.txt)
if is_stamped "$venv/.stamps/packages" "$wanted"; then
    done_step "up to date"
else
    install_pinned "$python" requirements-dev.txt constraints.txt ||
        die "The packages could not be installed; pip's message above says why (no network? a proxy?)."
    write_stamp "$venv/.stamps/packages" "$wanted"
    done_step
fi

step "3/4 native extension"
wanted=$(find tf_autofuse/frontend/native -type f \( -name '*.cc' -o -name '*.h' \) | LC_ALL=C sort |
    xargs cat native_build.py constraints.txt | cksum)
if is_stamped "$venv/.stamps/native" "$wanted" && ls tf_autofuse/frontend/_native*.so >/dev/null 2>&1; then
    done_step "up to date"
else
    command -v "${CXX:-g++}" >/dev/null 2>&1 ||
        die "The native extension needs a C++ compiler: install g++ (apt-get install g++), or set CXX."
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -f "$headers/Python.h" ] ||
        die "$headers/Python.h is missing: install the -dev package of this Python, or another Python 3.7."
    build_native || die "The native extension could not be built; the compiler's message is above."
    write_stamp "$venv/.stamps/native" "$wanted"
    done_step
fi

step "4/4 tf_autofuse in the environment"
wanted=$(checksum setup.py pyproject.toml requirements.txt; pwd)
if is_stamped "$venv/.stamps/package" "$wanted"; then
    done_step "up to date"
else
    AUTOFUSE_NATIVE_IS_BUILT=1 "$python" -m pip install --quiet --no-deps --no-build-isolation \
        --no-warn-script-location -e .
    write_stamp "$venv/.stamps/package" "$wanted"
    done_step
fi
tensorflow=$(ls "$venv/lib/python3.7/site-packages" | sed -n 's/^tensorflow-\(.*\)\.dist-info$/\1/p')
compiler=$("${CXX:-g++}" --version 2>/dev/null | head -n 1)
printf '    TensorFlow %s, %s\n' "$tensorflow" "${compiler:-no C++ compiler}"
