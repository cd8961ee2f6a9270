"""The engine as a library, without the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.store import JobStore
from tests.support.builders import document, template
from tests.support.expecting import until
from tests.support.fake_gpus import fake_gpus

GPUS = Machine("server", cpus=64, memory=1 << 40, gpus=fake_gpus(3))


def program(script: str, **container: Any) -> dict[str, Any]:
    return {"template": template(command=["bash", "-c", script], **container)}


async def test_each_pod_sees_its_own_gpus_and_one_without_sees_none(tmp_path: Path):
    wants = program("echo gpus: $CUDA_VISIBLE_DEVICES", resources={"limits": {"nvidia.com/gpu": 1}})
    serves = program("echo gpus: $CUDA_VISIBLE_DEVICES; sleep 300")
    async with LocalEngine(JobStore(tmp_path), GPUS) as engine:
        key = await engine.submit(document("gpus", ps=1, workers=2, worker_=wants, ps_=serves))
        await engine.wait_until_idle(key)
    logs = [engine.store.folder(key).log(1, f"gpus-{pod}").read_text() for pod in ("worker-0", "worker-1", "ps-0")]
    assert logs == ["gpus: 0\n", "gpus: 1\n", "gpus:\n"]


async def test_a_job_is_suspended_resumed_and_deleted_while_the_engine_stays(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path)) as engine:
        key = await engine.submit(document("job", workers=2, worker_=program("sleep 300")))
        folder = engine.store.folder(key)

        async def status() -> dict[str, Any]:
            return engine.status(key).model_dump(mode="json")

        await until(status, {"phase": "Running"})
        first = set(engine.jobs[key].pods)
        change_spec(folder, suspend=True)
        await until(status, {"phase": "Suspended"})
        await engine.wait_until_idle(key)
        assert engine.jobs[key].pods == {}
        change_spec(folder, suspend=False)
        await until(status, {"phase": "Running", "attempt": 2})
        assert engine.jobs[key].pods.keys() == first
        mark_for_deletion(folder, 1_800_000_000.0)
        await engine.wait_until_idle(key)
        assert not folder.path.exists()


async def test_a_deleted_program_has_its_grace_to_end_in(tmp_path: Path):
    slow = program(
        "exec 2>/dev/null; trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    )
    async with LocalEngine(JobStore(tmp_path)) as engine:
        key = await engine.submit(document("job", workers=1, worker_=slow))
        folder = engine.store.folder(key)
        log = folder.log(1, "job-worker-0")

        async def logged() -> dict[str, Any]:
            return {"log": log.read_text() if log.exists() else ""}

        await until(logged, {"log": "ready\n"})
        change_spec(folder, suspend=True)
        await until(logged, {"log": "ready\nsaved\n"})


async def test_a_peer_that_ignores_sigterm_does_not_delay_the_restart_after_a_worker_died(tmp_path: Path):
    """With its whole grace period of 30 s it would have come to its last line."""
    script = (
        f"test -e {tmp_path}/again && sleep 300; if test $PADDLE_TRAINER_ID = 0; then trap '' TERM; echo ready; "
        f"for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done; echo survived; sleep 300; fi; "
        f"sleep 0.5; touch {tmp_path}/again; exit 1"
    )
    async with LocalEngine(JobStore(tmp_path / "state")) as engine:
        key = await engine.submit(document("job", workers=2, worker_=program(script)))

        async def status() -> dict[str, Any]:
            return engine.status(key).model_dump(mode="json")

        await until(status, {"phase": "Running", "attempt": 2, "restarts": 1})
        assert engine.store.folder(key).log(1, "job-worker-0").read_text() == "ready\n"


async def test_servers_that_the_policy_keeps_are_stopped_when_the_job_completes(tmp_path: Path):
    serves, works = program("sleep 300"), program("true")
    serves["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    async with LocalEngine(JobStore(tmp_path)) as engine:
        key = await engine.submit(document("job", ps=1, workers=1, ps_=serves, worker_=works, cleanPodPolicy="Never"))
        await engine.wait_until_idle(key)
        assert engine.jobs[key].pods.keys() == {"job-ps-0", "job-worker-0"}
        assert engine.status(key).phase == "Completed"
        states = {record.name: (record.state, record.pid) for record in engine.store.folder(key).pods()}
        assert states == {"job-ps-0": ("Stopped", 0), "job-worker-0": ("Succeeded", 0)}


async def test_a_job_at_rest_holds_nothing_and_a_resumed_one_gets_ports_again(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path)) as engine:
        key = await engine.submit(document("job", workers=1, worker_=program("echo $PADDLE_PORT; sleep 300")))
        folder = engine.store.folder(key)
        allocation = engine.jobs[key].allocation

        async def state() -> dict[str, Any]:
            return {"phase": engine.status(key).phase, "port": allocation.port is not None}

        await until(state, {"phase": "Running", "port": True})
        change_spec(folder, suspend=True)
        await engine.wait_until_idle(key)
        assert allocation.port is None
        change_spec(folder, suspend=False)
        await until(state, {"phase": "Running", "port": True})
        log = folder.log(2, "job-worker-0")

        async def logged() -> dict[str, Any]:
            return {"log": log.read_text() if log.exists() else ""}

        await until(logged, {"log": f"{allocation.port}\n"})


async def test_a_job_that_waits_is_bound_as_soon_as_another_job_of_the_engine_has_ended(tmp_path: Path):
    one_cpu = {"resources": {"requests": {"cpu": 1}}}
    async with LocalEngine(JobStore(tmp_path), Machine("small", cpus=1, memory=1 << 40)) as engine:
        first = await engine.submit(document("first", workers=1, worker_=program("sleep 300", **one_cpu)))

        async def running() -> dict[str, Any]:
            return engine.status(first).model_dump(mode="json")

        await until(running, {"phase": "Running"})
        second = await engine.submit(document("second", workers=1, worker_=program("true", **one_cpu)))

        async def waiting() -> dict[str, Any]:
            return engine.status(second).model_dump(mode="json")

        await until(waiting, {"reason": "Unschedulable"})
        assert "other jobs hold first (1)" in engine.status(second).message
        mark_for_deletion(engine.store.folder(first), 1_800_000_000.0)
        await engine.wait_until_idle(second)
        assert engine.status(second).phase == "Completed"
