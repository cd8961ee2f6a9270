"""How long pods get to shut down when their attempt ends."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Delete, PodPhase
from paddlejob.plan.restarts.shutdown import SHORT_GRACE, UNMOUNT_SECONDS
from tests.support.builders import job, template
from tests.support.local_model import LocalModel
from tests.support.model import Model


async def running(**options: Any) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


async def test_peers_of_a_collective_worker_that_died_are_ended_quickly():
    model = await running(workers=3)
    model.end("mnist-worker-1", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE


@pytest.mark.parametrize("lost", ["missing", "node"])
async def test_so_are_those_of_a_worker_that_vanished_or_lost_its_node(lost: str):
    model = await running(workers=2)
    if lost == "missing":
        del model.pods["mnist-worker-1"]
    else:
        model.change("mnist-worker-1", deletion_due=model.now + 30, disrupted=True, reason="NodeLost")
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE


async def test_trainers_of_a_dead_server_are_ended_quickly_but_not_those_of_a_dead_worker():
    model = await running(ps=1, workers=2)
    model.end("mnist-ps-0", 0)
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE
    model = await running(ps=1, workers=2)
    model.end("mnist-worker-1", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] is None


async def test_trainers_of_a_dead_heter_worker_are_ended_quickly():
    model = await running(ps=1, workers=2, heter=1)
    model.end("mnist-heter-0", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE


async def test_a_job_that_is_whole_has_its_full_grace_period():
    evicted = await running(workers=2)
    evicted.change("mnist-worker-1", deletion_due=evicted.now + 30, disrupted=True, reason="Preempted")
    await evicted.step()
    assert evicted.graces == {"mnist-worker-0": None}
    scaled = await running(workers=2, elastic=1)
    scaled.edit(workers=3, elastic=1)
    await scaled.step()
    assert set(scaled.graces.values()) == {None}
    suspended = await running(workers=2)
    suspended.edit(workers=2, suspend=True)
    await suspended.step()
    assert set(suspended.graces.values()) == {None}


@pytest.mark.parametrize("own", ["terminationGracePeriodSeconds", "preStop"])
async def test_a_template_that_sets_its_own_shutdown_decides(own: str):
    made = template(lifecycle={"preStop": {"exec": {"command": ["save"]}}} if own == "preStop" else {})
    if own == "terminationGracePeriodSeconds":
        made["spec"][own] = 120
    model = await running(workers=2, worker_={"template": made})
    model.change("mnist-worker-1", phase=PodPhase.FAILED, exit_code=1)
    await model.step()
    assert model.graces["mnist-worker-0"] is None


async def test_the_next_attempt_does_not_wait_for_pods_whose_containers_have_all_ended():
    model = await running(workers=3)
    model.end("mnist-worker-1", 1)
    model.end("mnist-worker-2", 1, lingers=True)
    await model.step()
    assert sorted(model.pods) == ["mnist-worker-0", "mnist-worker-2"]
    assert all(pod.deleting for pod in model.pods.values()), "what may still run has its time to end"
    model.change("mnist-worker-0", phase=PodPhase.FAILED, exit_code=143, containers_ended=True)
    await model.step()
    assert sorted(model.pods) == ["mnist-worker-2"]


VOLUMES = {
    "emptyDir": {"emptyDir": {}},
    "projected": {"projected": {"sources": []}},
    "ephemeral": {"ephemeral": {"volumeClaimTemplate": {}}},
    "hostPath": {"hostPath": {"path": "/data"}},
    "nfs": {"nfs": {"server": "files", "path": "/"}},
    "disk": {"gcePersistentDisk": {"pdName": "data"}},
    "claim": {"persistentVolumeClaim": {"claimName": "output"}},
    "read-only claim": {"persistentVolumeClaim": {"claimName": "output", "readOnly": True}},
    "inline CSI": {"csi": {"driver": "fuse.example.com"}},
    "CephFS": {"cephfs": {"monitors": ["m"]}},
    "a type of the future": {"hologram": {}},
}
ENDS_WITH_POD = ("emptyDir", "projected", "ephemeral", "read-only claim")
WRITTEN_AT_ONCE = (*ENDS_WITH_POD, "hostPath", "nfs", "disk")


def writing(volume: str, **mount: Any) -> dict[str, Any]:
    """A worker whose container mounts the volume."""
    made = template(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
    made["spec"]["volumes"] = [{"name": "data", **VOLUMES[volume]}]
    return {"template": made}


@pytest.mark.parametrize("volume", VOLUMES)
async def test_pods_that_can_write_to_what_outlives_them_have_their_full_grace_period(volume: str):
    model = await running(workers=2, worker_=writing(volume))
    model.end("mnist-worker-1", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] == (SHORT_GRACE if volume in ENDS_WITH_POD else None)


@pytest.mark.parametrize("volume", VOLUMES)
async def test_a_volume_that_may_be_written_back_when_it_is_unmounted_is_left_to_the_kubelet(volume: str):
    model = await running(workers=3, worker_=writing(volume))
    model.now += 100
    model.end("mnist-worker-1", 1)
    await model.step()
    model.change("mnist-worker-0", phase=PodPhase.FAILED, exit_code=143, containers_ended=True)
    await model.step()
    forced = [one.force for one in model.done if isinstance(one, Delete)]
    assert any(forced) is (volume in WRITTEN_AT_ONCE)
    assert ("mnist-worker-0" in model.pods) is (volume not in WRITTEN_AT_ONCE)


@pytest.mark.parametrize("volume", VOLUMES)
async def test_the_next_attempt_waits_for_the_volumes_of_a_pod_that_the_api_server_removes_at_once(volume: str):
    model = await running(workers=1, worker_=writing(volume))
    model.now += 100
    model.end("mnist-worker-0", 1)
    await model.step()
    await model.step()
    created = [one.name for one in model.pods.values() if one.attempt == 2]
    assert created == (["mnist-worker-0"] if volume in WRITTEN_AT_ONCE else [])
    restarted = next(one.message for one in model.events if one.reason == "ProgramFailed")
    assert ("restart 1 of 3 now" if created else "restart 1 of 3 in 5 s") in restarted
    model.now += UNMOUNT_SECONDS
    await model.step()
    assert [one.attempt for one in model.pods.values()] == [2]


async def test_a_volume_that_no_container_writes_to_delays_nothing():
    for mount in ({"readOnly": True}, {"name": "another"}):
        model = await running(workers=2, worker_=writing("claim", **mount))
        model.end("mnist-worker-1", 1)
        await model.step()
        assert model.graces["mnist-worker-0"] == SHORT_GRACE
        assert "mnist-worker-1" not in model.pods


async def test_on_this_machine_no_volume_is_unmounted():
    model = LocalModel(job(workers=2, worker_=writing("claim")))
    await model.settle()
    model.now += 100
    model.end("mnist-worker-1", 1)
    await model.step()
    assert not model.status.nextRestartTime
