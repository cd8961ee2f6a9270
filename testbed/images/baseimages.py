"""The two images that every cluster needs: the pause container and busybox."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.images.image import Image, layer
from testbed.images.registry import Registry

PAUSE = "registry.k8s.io/pause:3.10"
BUSYBOX = "docker.io/library/busybox:latest"


def push_base_images(registry: Registry) -> None:
    """Build both from Debian's static busybox, unless the registry has them."""
    if registry.has(PAUSE) and registry.has(BUSYBOX):
        return
    with tempfile.TemporaryDirectory(prefix="testbed-image-") as scratch:
        root = Path(scratch, "root")
        _install_busybox(root)
        shell = layer(root, Path(scratch, "layer.tar"))
        search = {"PATH": "/bin"}
        registry.push(Image(PAUSE, [shell], entrypoint=["/bin/sleep", "infinity"], environment=search))
        registry.push(Image(BUSYBOX, [shell], command=["/bin/sh"], environment=search))


def _install_busybox(root: Path) -> None:
    busybox = shutil.which("busybox")
    assert busybox, "call packages.require first"
    binaries = root / "bin"
    binaries.mkdir(parents=True)
    (root / "tmp").mkdir(mode=0o1777)
    shutil.copy(busybox, binaries / "busybox")
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    for applet in set(listed.split()) - {"busybox"}:
        (binaries / applet).symlink_to("busybox")
