# Sourced by the other scripts: numbered steps with their time, and stamps that make the second run quick.

die() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

step() {
    step_started=$(date +%s)
    printf '==> %s\n' "$*"
}

done_step() {
    printf '    %s (%d s)\n' "${1:-done}" $(($(date +%s) - step_started))
}

# A stamp file holds the checksum of what the step was made from: any change of it makes the step run again.
checksum() {
    cat "$@" | cksum
}

is_stamped() {
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

write_stamp() {
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "$2" >"$1"
}

# Makes a virtual environment: new_environment PYTHON FOLDER
new_environment() {
    "$1" -m venv "$2" && return 0
    rm -rf "$2"
    "$1" -m virtualenv "$2" && return 0
    die "$1 can make no virtual environment.
Install its venv module (Debian and Ubuntu: apt-get install python3-venv) or virtualenv
($1 -m pip install virtualenv), then run make again."
}

# Installs pinned packages: install_pinned PYTHON REQUIREMENTS CONSTRAINTS
install_pinned() {
    # pip and wheel first: gast 0.2.2 comes as source only
    "$1" -m pip install --quiet --disable-pip-version-check -c "$3" pip setuptools wheel &&
        "$1" -m pip install --disable-pip-version-check --no-warn-script-location -c "$3" -r "$2"
}
