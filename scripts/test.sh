#!/bin/sh
# Runs the tests: first the part without TensorFlow on another Python (where one from 3.8 to 3.11 is at hand),
# then everything on Python 3.7. test.sh FOLDER_OF_THE_ENVIRONMENT FOLDER_OF_THE_OTHER [pytest's arguments]
# On exit the last line is pytest's own; the first run that fails ends the script with its exit code.
# No test sees the user's settings or kernel cache (AUTOFUSE_TEST_CACHE=folder keeps the kernels).
set -eu
cd "$(dirname "$0")/.."
. scripts/steps.sh

venv=$1
other=$2
shift 2
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
unset AUTOFUSE_FLAGS AUTOFUSE_DFX_FLAGS AUTOFUSE_TARGET AUTOFUSE_STRICT AUTOFUSE_VERBOSE AUTOFUSE_CACHE_SIZE \
    AUTOFUSE_BUILD AUTOFUSE_TWIN_CHECK DUMP_GE_GRAPH DUMP_GRAPH_LEVEL DUMP_GRAPH_PATH
if [ -n "${AUTOFUSE_TEST_CACHE:-}" ]; then
    AUTOFUSE_CACHE_DIR=$AUTOFUSE_TEST_CACHE
else
    AUTOFUSE_CACHE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/autofuse-tests-XXXXXX")
    trap 'rm -rf "$AUTOFUSE_CACHE_DIR"' EXIT
    trap 'exit 130' INT TERM
fi
# 2 would hide the native warnings that tests read.
export AUTOFUSE_CACHE_DIR TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-1}"

# In a subshell: a Python that can make no environment is no reason not to test on the other one
if [ -x "$other/bin/python" ] || {
    found=$(sh scripts/find_python.sh --quiet 3.11 3.10 3.9 3.8) && (new_environment "$found" "$other")
}; then
    step "environment without TensorFlow"
    wanted=$(checksum requirements-tffree.txt constraints-tffree.txt)
    if ! is_stamped "$other/.stamps/packages" "$wanted"; then
        install_pinned "$other/bin/python" requirements-tffree.txt constraints-tffree.txt ||
            die "The packages for the tests without TensorFlow could not be installed; pip says above why."
        write_stamp "$other/.stamps/packages" "$wanted"
    fi
    done_step "$("$other/bin/python" -V 2>&1) in $other"
    step "tests without TensorFlow"
    # The twin is C++ and the faults are the operating system's: neither knows which Python asks
    "$other/bin/python" -m pytest -q -n 2 -p no:cacheprovider -m "not tensorflow and not once" \
        --ignore=tests/twin --ignore=tests/faults
    done_step
else
    printf '==> no Python 3.8 to 3.11 that can make an environment: all tests run on 3.7 only\n'
fi

step "tests on $("$venv/bin/python" -V 2>&1)"
"$venv/bin/python" -m pytest -q -n 2 --dist worksteal --durations 10 "$@"
