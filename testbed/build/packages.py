"""The Debian packages that a node needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from paddlejob.errors import NotPossible
from testbed.build.binaries import Say

CNI_PLUGINS = Path("/usr/lib/cni")
# Each package with a program that shows that it is installed.
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
    """Install the packages whose program is missing. Raises NotPossible if that is not allowed here."""
    missing = [package for package, program in programs.items() if not shutil.which(program)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotPossible(f"programs are missing; install the Debian packages {' '.join(missing)}")
    say(f"Installing the Debian packages {' '.join(missing)}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True)
        if done.returncode:
            raise NotPossible(f"apt-get {' '.join(command)} failed: {done.stderr.strip()}")
