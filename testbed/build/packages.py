"""The Debian packages that a node is made of."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from paddlejob.errors import NotPossible
from testbed.build.binaries import Say

CNI_PLUGINS = Path("/usr/lib/cni")
# A program of each package by which we know that it is there.
NODE = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": str(CNI_PLUGINS / "bridge"),
    "iptables": "iptables",
    "conntrack": "conntrack",
    "busybox-static": "busybox",
    "iproute2": "ip",
    "docker-registry": "docker-registry",
}
IMAGES = {"mmdebstrap": "mmdebstrap"}


def require(programs: Mapping[str, str], say: Say) -> None:
    """Install the packages of which the program is missing; NotPossible where that cannot be done."""
    missing = [package for package, program in programs.items() if not shutil.which(program)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotPossible(f"missing programs; install the Debian packages {' '.join(missing)}")
    say(f"installing the Debian packages {' '.join(missing)}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True)
        if done.returncode:
            raise NotPossible(f"apt-get {' '.join(command)} failed: {done.stderr.strip()}")
