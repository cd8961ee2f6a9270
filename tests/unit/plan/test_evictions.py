"""Evictions for what a program used itself are failures, the others disruptions. The texts are a kubelet's."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.objects.container_status import container_status
from paddlejob.plan import PodPhase
from tests.support.builders import job
from tests.support.model import Model

LOW_MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi. "
LOW_DISK = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. "
SELF_INFLICTED = {
    LOW_MEMORY
    + "Container paddle was using 9Gi, request is 4Gi, has larger consumption of memory. ": "requests.memory",
    LOW_MEMORY
    + "Container paddle was using 900Mi, request is 0, has larger consumption of memory. ": "requests.memory",
    LOW_MEMORY + "Pod mnist-worker-1 was using 9Gi, request is 8500Mi, has larger consumption of memory. ": "requests",
    LOW_DISK + "Container paddle was using 5Gi, request is 0, has larger consumption of ephemeral-storage. ": (
        "requests.ephemeral-storage"
    ),
    'Container paddle exceeded its local ephemeral storage limit "1Gi". ': "limits.ephemeral-storage",
    "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ": "limits.ephemeral-storage",
    'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". ': "sizeLimit of the volume",
}
FROM_OUTSIDE = [
    LOW_MEMORY,
    LOW_MEMORY + "Container proxy was using 40Mi, request is 0, has larger consumption of memory. ",
    LOW_MEMORY
    + "Pod mnist-worker-1 was using 7Gi, request is 8Gi, has larger consumption of memory. "
    + "Container paddle was using 7Gi, request is 0, has larger consumption of memory. ",
    "The node had condition: [DiskPressure]. ",
    "Eviction API: evicting",
    "",
]
BY_KUBELET = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


def evicted(message: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "mnist-worker-1"},
        "spec": {"containers": [{"name": "paddle"}, {"name": "proxy"}]},
        "status": {"phase": "Failed", "reason": "Evicted", "message": message, "conditions": [*conditions]},
    }


@pytest.mark.parametrize("message", SELF_INFLICTED)
@pytest.mark.parametrize("conditions", [(), (BY_KUBELET,)])
def test_a_pod_that_was_evicted_for_its_own_usage_failed(message: str, conditions: tuple[dict[str, Any], ...]):
    found = container_status(evicted(message, *conditions), "env")
    assert (found.phase, found.disrupted, found.reason) == (PodPhase.FAILED, False, "Evicted")


@pytest.mark.parametrize("message", FROM_OUTSIDE)
@pytest.mark.parametrize("conditions", [(), (BY_KUBELET,)])
def test_a_pod_that_kept_to_its_requests_was_disrupted(message: str, conditions: tuple[dict[str, Any], ...]):
    found = container_status(evicted(message, *conditions), "env")
    assert (found.phase, found.disrupted, found.reason) == (PodPhase.FAILED, True, "Evicted")


@pytest.mark.parametrize(("message", "remedy"), SELF_INFLICTED.items())
async def test_such_a_failure_counts_and_says_what_to_change(message: str, remedy: str):
    model = Model(job(backoffLimit=1))
    await model.settle()
    for _ in range(2):
        model.change("mnist-worker-1", phase=PodPhase.FAILED, reason="Evicted", message=message)
        model.end("mnist-worker-0", 250, message="peer died")
        await model.settle()
    assert (model.status.phase, model.status.reason, model.status.disruptions) == ("Failed", "BackoffLimitExceeded", 0)
    assert remedy in model.status.message and message.strip().removesuffix(".")[:60] in model.status.message
    assert [one.reason for one in model.events].count("UsageExceeded") == 1
