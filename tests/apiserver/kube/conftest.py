"""A client of the real API server, and a way to compact its etcd."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.kube.kubeconfig import from_kubeconfig
from testbed.controlplane import ControlPlane


@pytest.fixture
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.kubeconfig


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(from_kubeconfig(str(kubeconfig))) as client:
        yield client


@pytest.fixture
def stranger(control_plane: ControlPlane) -> Access:
    """A user whom the server knows and who has no permissions."""
    return from_kubeconfig(str(control_plane.kubeconfig_of("stranger", "stranger")))


def compact(plane: ControlPlane) -> None:
    """Compact all of etcd's history before now."""
    options = dict(option.split("=", 1) for option in plane.processes["etcd"].command if "=" in option)
    etcd = options["--advertise-client-urls"]

    def post(path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        request = urllib.request.Request(f"{etcd}{path}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    any_key = base64.b64encode(b"/").decode()
    revision = post("/v3/kv/range", {"key": any_key})["header"]["revision"]
    post("/v3/kv/compaction", {"revision": revision, "physical": True})
