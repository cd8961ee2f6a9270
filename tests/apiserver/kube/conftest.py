"""A client of the real API server, and what these stories do to that server."""

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
    """A user whom the server knows and who has no rights."""
    return from_kubeconfig(str(control_plane.kubeconfig_of("stranger", "stranger")))


def compact(plane: ControlPlane) -> None:
    """Make etcd forget all history before now."""
    options = dict(word.split("=", 1) for word in plane.processes["etcd"].command if "=" in word)
    etcd = options["--advertise-client-urls"]

    def ask(path: str, question: dict[str, object]) -> dict[str, dict[str, str]]:
        request = urllib.request.Request(f"{etcd}{path}", data=json.dumps(question).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    any_key = base64.b64encode(b"/").decode()
    revision = ask("/v3/kv/range", {"key": any_key})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})
