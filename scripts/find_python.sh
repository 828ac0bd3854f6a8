#!/bin/sh
# Prints the path of a Python of one of the wanted versions, the first that is found: find_python.sh 3.7
# Looks at $PYTHON37 and $PYTHON, on PATH, in pyenv, uv, conda, and where CI images keep their interpreters.
# Installs nothing.
# Exit code 1 and advice on stderr where there is none. With --quiet, no advice.
set -u

quiet=no
[ "${1:-}" = "--quiet" ] && { quiet=yes; shift; }
[ $# -gt 0 ] || { echo "usage: find_python.sh [--quiet] VERSION..." >&2; exit 2; }

# Prints "version bits path" of an interpreter; nothing if it does not run (as a pyenv shim may not).
probe() {
    "$1" -c 'import struct, sys
print("%d.%d %d %s" % (sys.version_info[0], sys.version_info[1], struct.calcsize("P") * 8, sys.executable))' \
        2>/dev/null </dev/null
}

# Ends the script with the interpreter's path if it is the wanted one.
try() {
    answer=$(probe "$1") || return 1
    case $answer in
        "$wanted 64 "?*) printf '%s\n' "${answer#* * }"; exit 0 ;;
    esac
    return 1
}

try_all() {
    for candidate in "$@"; do
        [ -x "$candidate" ] && try "$candidate"
    done
    return 1
}

pyenv_roots() {
    [ -n "${PYENV_ROOT:-}" ] && printf '%s\n' "$PYENV_ROOT"
    command -v pyenv >/dev/null 2>&1 && pyenv root 2>/dev/null
    [ -n "${HOME:-}" ] && printf '%s\n' "$HOME/.pyenv"
}

conda_environments() {
    [ -n "${CONDA_PREFIX:-}" ] && printf '%s\n' "$CONDA_PREFIX"
    # conda and mamba list every environment they have made in this file
    [ -n "${HOME:-}" ] && [ -r "$HOME/.conda/environments.txt" ] && cat "$HOME/.conda/environments.txt"
    home=${HOME:-/nonexistent}
    for base in "$home/miniconda3" "$home/anaconda3" "$home/miniforge3" "$home/micromamba" /opt/conda \
            "${MAMBA_ROOT_PREFIX:-/nonexistent}"; do
        for folder in "$base" "$base"/envs/*; do
            [ -d "$folder" ] && printf '%s\n' "$folder"
        done
    done
}

look_for() {
    wanted=$1
    if [ "$wanted" = 3.7 ] && [ -n "${PYTHON37:-}" ]; then
        # asked for by name: anything else would be a surprise
        try "$PYTHON37"
        answer=$(probe "$PYTHON37" || echo nothing)
        echo "PYTHON37=$PYTHON37 is not a 64-bit Python 3.7 (it says: $answer)." >&2
        exit 1
    fi
    [ -n "${PYTHON:-}" ] && try "$PYTHON"
    for name in "python$wanted" python3 python; do
        command -v "$name" >/dev/null 2>&1 && try "$name"
    done

    # Loops over lines, so that a folder with a space in its name stays whole
    old_ifs=$IFS
    IFS='
'
    for root in $(pyenv_roots); do try_all "$root/versions/$wanted"*/bin/python; done
    for root in $(conda_environments); do try_all "$root/bin/python"; done
    IFS=$old_ifs
    if command -v uv >/dev/null 2>&1; then
        found=$(UV_PYTHON_DOWNLOADS=never uv python find "$wanted" 2>/dev/null) && try "$found"
    fi
    tag=$(printf 'cp%s' "$wanted" | tr -d .)
    try_all "/usr/local/bin/python$wanted" "/opt/python/$tag-$tag"*/bin/python \
        /opt/hostedtoolcache/Python/"$wanted".*/x64/bin/python
    return 1
}

for version in "$@"; do look_for "$version"; done
[ "$quiet" = yes ] && exit 1
cat >&2 <<END

No Python $* was found on PATH, in pyenv, uv or conda. Install one, then run make again:
    pyenv install 3.7.16                      (https://github.com/pyenv/pyenv)
    uv python install 3.7                     (https://docs.astral.sh/uv)
    conda create -n py37 python=3.7           (https://conda-forge.org)
or name one that you have: make demo PYTHON37=/path/to/python3.7
END
exit 1
