"""Verbs as users type them, against an API server that answers as a test scripts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.crd import crd
from paddlejob.operator.manifests import NAME, NAMESPACE
from tests.support.called_pdj import Called, pdj
from tests.support.scripted_cluster import ScriptedCluster

Pdj = Callable[..., Awaitable[Called]]


def established(api: ScriptedCluster) -> None:
    """The cluster establishes CRDs and rolls out Deployments at once, and has no webhooks."""
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "persistentvolumeclaims"):
        api.answers["GET", plural] = 200, {"metadata": {"resourceVersion": "1"}, "items": []}
    conditions = [{"type": "Established", "status": "True"}]
    name = f"customresourcedefinitions/{contract.PLURAL}.{contract.GROUP}"
    api.answers["GET", name] = 200, {**crd(), "status": {"conditions": conditions}}
    rolled = {"observedGeneration": 1, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}
    deployment = {"metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1}, "spec": {}, "status": rolled}
    api.answers["GET", f"{NAMESPACE}/deployments/{NAME}"] = 200, deployment
    api.deployments = []


@pytest.fixture
async def api() -> ScriptedCluster:
    made = ScriptedCluster()
    kinds = {"PaddleJob": "paddlejobs", "ConfigMap": "configmaps", "Secret": "secrets"}
    made.kinds = [{"name": plural, "kind": kind, "namespaced": True} for kind, plural in kinds.items()]
    return made


@pytest.fixture
async def called(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pdj:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("x", "west")],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))

    async def call(*arguments: str, **options: Any) -> Called:
        return await asyncio.to_thread(lambda: pdj(*arguments, folder=tmp_path, **options))

    return call
