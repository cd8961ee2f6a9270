"""What pods use, by the metrics API where the cluster has one."""

from __future__ import annotations

import time
from typing import Any

from paddlejob import contract
from paddlejob.api.quantity import parse_quantity
from paddlejob.errors import KubeError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Resource
from paddlejob.targets.views import JobView, Usage

RETRY_SECONDS = 60.0
"""A cluster without the metrics API, or a user without permission, is asked again after this time."""


class PodMeter:
    def __init__(self) -> None:
        self._retry_at = 0.0

    async def read(self, client: Client, view: JobView) -> dict[str, Usage]:
        if time.monotonic() < self._retry_at or not any(pod.state == "Running" for pod in view.pods):
            return {}
        pods, selector = Resource("metrics.k8s.io", "v1beta1", "pods"), f"{contract.LABEL_JOB}={view.job.name}"
        try:
            found = await client.list(pods, view.job.namespace, label_selector=selector)
        except KubeError:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return {}
        return {str(one["metadata"]["name"]): pod_usage(one) for one in found}


def pod_usage(obj: dict[str, Any]) -> Usage:
    used = [one.get("usage") or {} for one in obj.get("containers") or []]
    cpu, memory = (sum(parse_quantity(one[name]) for one in used if name in one) for name in ("cpu", "memory"))
    return Usage(cpu, int(memory))
