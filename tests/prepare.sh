#!/usr/bin/env bash
# Installs what the tests use beside Rust and Node: a browser, promtool, amtool, Prometheus, Alertmanager, and the Python client of NVML.
# Nothing is started. What cannot be had is said, and the tests that need it say so too.
set -uo pipefail
cd "$(dirname "$0")/.."
tools=target/tools
mkdir -p "$tools"

need_apt() { # package command
    command -v "$2" >/dev/null && return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "missing: $2 (as root: apt-get install $1)" >&2
        return 1
    fi
    apt_update
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >"$tools/apt-$1.log" 2>&1 ||
        { echo "missing: $2 (apt-get install $1 failed, see $tools/apt-$1.log)" >&2; return 1; }
}

apt_update() {
    [ -e "$tools/.apt-updated" ] && return 0
    apt-get update -qq >"$tools/apt-update.log" 2>&1
    touch "$tools/.apt-updated"
}

# Unpacked, not installed: Debian would start a server on its default port.
unpack() { # package path-inside name
    [ -x "$tools/bin/$3" ] && return 0
    [ "$(id -u)" -eq 0 ] && apt_update
    local folder
    folder=$(mktemp -d)
    if (cd "$folder" && apt-get download -qq "$1" >/dev/null 2>&1) && dpkg -x "$folder"/*.deb "$folder/x" &&
        mkdir -p "$tools/bin" && cp "$folder/x/$2" "$tools/bin/$3"; then
        rm -rf "$folder"
    else
        rm -rf "$folder"
        echo "missing: $3 (apt-get download $1 failed)" >&2
        return 1
    fi
}

need_apt chromium chromium
need_apt python3-pip pip3
need_apt curl curl
unpack prometheus usr/bin/promtool promtool
unpack prometheus usr/bin/prometheus prometheus
unpack prometheus-alertmanager usr/bin/amtool amtool
unpack prometheus-alertmanager usr/bin/prometheus-alertmanager prometheus-alertmanager

# Debian's Alertmanager reads its templates from there and nowhere else.
share=/usr/share/prometheus/alertmanager
if [ ! -e "$share/default.tmpl" ] && [ "$(id -u)" -eq 0 ]; then
    folder=$(mktemp -d)
    if (cd "$folder" && apt-get download -qq prometheus-alertmanager >/dev/null 2>&1) && dpkg -x "$folder"/*.deb "$folder/x"; then
        mkdir -p "$share" && cp -r "$folder/x$share/." "$share/"
    fi
    rm -rf "$folder"
fi
[ -e "$share/default.tmpl" ] || echo "missing: $share/default.tmpl (as root: apt-get install prometheus-alertmanager)" >&2

if [ ! -d "$tools/python/pynvml.py" ] && [ ! -e "$tools/python/pynvml.py" ]; then
    python3 -m pip install --quiet --disable-pip-version-check --target "$tools/python" nvidia-ml-py >"$tools/pip.log" 2>&1 ||
        echo "missing: the Python package nvidia-ml-py (see $tools/pip.log)" >&2
fi
exit 0
