#!/bin/sh
# Makes the environments of the suite's peers, torch.compile and JAX, for a Python of 3.11 or newer:
#     scripts/bench_environments.sh [torch] [jax]        default: both
# Folders .venv-bench-torch and .venv-bench-jax; pinned packages. Without such a Python it says so and ends
# well: the suite then leaves the peers out. torch is large (its wheels bring the GPU libraries along).
set -e
cd "$(dirname "$0")/.."
. scripts/steps.sh

find_newer_python() {
    for candidate in "$PYTHON311" python3.13 python3.12 python3.11 python3; do
        [ -n "$candidate" ] || continue
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        echo "$candidate"
        return 0
    done
    return 1
}

packages_of() {
    case "$1" in
        torch) echo "torch==2.6.0 numpy==2.1.3 setuptools" ;;
        jax) echo "jax==0.4.38 jaxlib==0.4.38 numpy==2.1.3" ;;
        *) die "no peer $1; there are torch and jax" ;;
    esac
}

python=$(find_newer_python) || {
    echo "no Python of 3.11 or newer: the suite leaves torch.compile and JAX out"
    exit 0
}
for peer in ${*:-torch jax}; do
    packages=$(packages_of "$peer")
    stamp=.venv-bench-$peer/stamp
    wanted="$("$python" --version) $packages"
    is_stamped "$stamp" "$wanted" && continue
    step "environment of $peer"
    new_environment "$python" ".venv-bench-$peer"
    # shellcheck disable=SC2086
    ".venv-bench-$peer/bin/python" -m pip install --quiet --disable-pip-version-check $packages
    write_stamp "$stamp" "$wanted"
    done_step
done
