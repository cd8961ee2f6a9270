"""Fake devices on the nodes of a cluster: a device plugin, and a driver of resource claims (DRA).

A kubelet calls both through sockets in its directory (`kubelet_plugin.py`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc

from testbed.access import Access
from testbed.addons.kubelet_plugin import Method, field, fields, registered, served
from testbed.cluster import Cluster
from testbed.nodes.node import Node

PLUGIN, REGISTRATION = "v1beta1.DevicePlugin", "/v1beta1.Registration/Register"
DRA = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
DRIVER = "devices.example.com"


@contextmanager
def fake_devices(cluster: Cluster, **counts: int) -> Iterator[None]:
    """Offer devices on every node while the block runs: fake_devices(cluster, **{"nvidia.com/gpu": 1}).

    A container that gets some finds their names in ALLOCATED_<the last part of the resource's name>.
    """
    with ExitStack() as stack:
        for node in cluster.nodes:
            for resource, count in counts.items():
                stack.enter_context(_device_plugin(node, resource, count))
        yield


@contextmanager
def fake_driver(cluster: Cluster, count: int) -> Iterator[None]:
    """Offer `count` devices of the class `fake` on every node to resource claims."""
    meta = {"apiVersion": "resource.k8s.io/v1"}
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    made = [{**meta, "kind": "DeviceClass", "metadata": {"name": "fake"}, "spec": {"selectors": [selector]}}]
    for node in cluster.nodes:
        pool = {"name": node.name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"device-{number}"} for number in range(count)]
        spec = {"driver": DRIVER, "nodeName": node.name, "pool": pool, "devices": devices}
        made.append({**meta, "kind": "ResourceSlice", "metadata": {"name": f"fake-{node.name}"}, "spec": spec})
    with ExitStack() as stack:
        for node in cluster.nodes:
            stack.enter_context(_dra_plugin(node, cluster))
        cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
        try:
            yield
        finally:
            names = [f"resourceslice/fake-{node.name}" for node in cluster.nodes]
            cluster.kubectl("delete", "deviceclass/fake", *names)


@contextmanager
def _device_plugin(node: Node, resource: str, count: int) -> Iterator[None]:
    name = resource.rpartition("/")[2]
    devices = b"".join(field(1, field(1, f"{node.name}-{name}-{one}") + field(2, "Healthy")) for one in range(count))
    stopped = threading.Event()

    def list_and_watch(_: bytes, context: Any) -> Iterator[bytes]:
        yield devices
        while context.is_active() and not stopped.wait(0.2):
            pass

    def allocate(request: bytes) -> bytes:
        answers = b""
        for container in fields(request, 1):
            given = ",".join(one.decode() for one in fields(container, 1))
            answers += field(1, field(1, field(1, f"ALLOCATED_{name.upper()}") + field(2, given)))
        return answers

    methods: dict[str, Method] = {"GetDevicePluginOptions": lambda _: b"", "Allocate": allocate}
    folder = node.kubelet_directory / "device-plugins"
    with served(folder / f"{name}.sock", {PLUGIN: methods}, list_and_watch):
        request = field(1, "v1beta1") + field(2, f"{name}.sock") + field(3, resource)
        with grpc.insecure_channel(f"unix://{folder / 'kubelet.sock'}") as channel:
            channel.unary_unary(REGISTRATION)(request, timeout=30, wait_for_ready=True)
        try:
            yield
        finally:
            stopped.set()


@contextmanager
def _dra_plugin(node: Node, cluster: Access) -> Iterator[None]:
    def prepare(request: bytes) -> bytes:
        """Say which devices the scheduler has allocated to each claim."""
        answers = b""
        for claim in fields(request, 1):
            namespace, uid, name = (fields(claim, number)[0].decode() for number in (1, 2, 3))
            found = json.loads(cluster.kubectl("-n", namespace, "get", "resourceclaim", name, "-o", "json").stdout)
            devices = b"".join(
                field(1, field(1, one["request"]) + field(2, one["pool"]) + field(3, one["device"]))
                for one in found["status"]["allocation"]["devices"]["results"]
            )
            answers += field(1, field(1, uid) + field(2, devices))
        return answers

    def unprepare(request: bytes) -> bytes:
        return b"".join(field(1, field(1, fields(claim, 2)[0]) + field(2, b"")) for claim in fields(request, 1))

    plugin: dict[str, Method] = {"NodePrepareResources": prepare, "NodeUnprepareResources": unprepare}
    with registered(node, "DRAPlugin", DRIVER, "v1.DRAPlugin", {DRA: plugin}):
        yield
