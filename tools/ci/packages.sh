#!/usr/bin/env bash
# Installs the Debian packages that the tests use, those that are missing, and those that it is given.
set -euo pipefail

# Real pods need a container runtime with its network plugins; busybox and tini go into the images that are built for them. Alerts are read by promtool.
# Gitea is built with a C compiler, and runs git. Temporal as a cluster keeps its data in PostgreSQL; its command line tool comes by pip where its release cannot be downloaded. Completion is tried in each shell. A browser looks at Temporal's UI.
packages=(containerd runc containernetworking-plugins iptables iproute2 openssl busybox-static tini procps prometheus postgresql git gcc libc6-dev zsh fish chromium python3-pip "$@")

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install_packages() {
  local missing sudo=()
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    echo 'all there'
    return
  fi
  if ((EUID != 0)); then sudo=(sudo); fi
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

if command -v apt-get >/dev/null; then install_packages; else echo "no apt-get here: taking for granted ${packages[*]}"; fi
