"""A volume with a cache: what a pod writes reaches the store when the volume is unmounted, some seconds later.

Volumes over FUSE with a write-back cache do so. Here a CSI driver does, which a real kubelet calls: each pod has a copy
of the store, and NodeUnpublishVolume waits and copies it back.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.addons.kubelet_plugin import INSIDE, Method, field, fields, registered
from testbed.cluster import Cluster
from testbed.nodes.node import Node

DRIVER = "writeback.example.com"
VOLUME = {"csi": {"driver": DRIVER}}
"""The source of the volume in a pod."""
OBJECT = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": DRIVER},
    "spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]},
}


@contextmanager
def write_back_volumes(cluster: Cluster, store: Path, seconds: float) -> Iterator[None]:
    """Let pods mount VOLUME, whose content reaches `store` so many seconds after the kubelet unmounts it."""
    store.mkdir(exist_ok=True)
    with ExitStack() as stack:
        for node in cluster.nodes:
            stack.enter_context(_driver(node, store, seconds))
        cluster.kubectl("create", "-f", "-", input=json.dumps(OBJECT))
        try:
            yield
        finally:
            cluster.kubectl("delete", "csidriver", DRIVER)


@contextmanager
def _driver(node: Node, store: Path, seconds: float) -> Iterator[None]:
    def outside(path: bytes) -> Path:
        return node.kubelet_directory / Path(path.decode()).relative_to(INSIDE)

    def publish(request: bytes) -> bytes:
        shutil.copytree(store, outside(fields(request, 4)[0]), dirs_exist_ok=True)
        return b""

    def unpublish(request: bytes) -> bytes:
        """A kubelet that has lost patience asks again."""
        target = outside(fields(request, 2)[0])
        if target.exists():
            time.sleep(seconds)
            shutil.copytree(target, store, dirs_exist_ok=True)
            shutil.rmtree(target)
        return b""

    identity: dict[str, Method] = {
        "GetPluginInfo": lambda _: field(1, DRIVER) + field(2, "1"),
        "GetPluginCapabilities": lambda _: b"",
        "Probe": lambda _: b"",
    }
    plugin: dict[str, Method] = {
        "NodeGetInfo": lambda _: field(1, node.name),
        "NodeGetCapabilities": lambda _: b"",
        "NodePublishVolume": publish,
        "NodeUnpublishVolume": unpublish,
    }
    with registered(node, "CSIPlugin", DRIVER, "1.0.0", {"csi.v1.Identity": identity, "csi.v1.Node": plugin}):
        yield
