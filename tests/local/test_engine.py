"""The engine as a library, without the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddlejob.local.changes import change_spec, mark_for_deletion
from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.resources import Machine
from paddlejob.local.store import Store
from tests.support.builders import document, template
from tests.support.expecting import until

GPUS = Machine("server", cpus=64, memory=1 << 40, gpus=("0", "1", "2"))


def program(script: str, **container: Any) -> dict[str, Any]:
    return {"template": template(command=["bash", "-c", script], **container)}


async def test_each_pod_sees_its_own_gpus_and_one_without_sees_none(tmp_path: Path):
    wants = program("echo gpus: $CUDA_VISIBLE_DEVICES", resources={"limits": {"nvidia.com/gpu": 1}})
    serves = program("echo gpus: $CUDA_VISIBLE_DEVICES; sleep 300")
    async with LocalEngine(Store(tmp_path), GPUS) as engine:
        key = await engine.submit(document("gpus", ps=1, workers=2, worker_=wants, ps_=serves))
        await engine.rest(key)
    logs = [engine.store.folder(key).log(1, f"gpus-{pod}").read_text() for pod in ("worker-0", "worker-1", "ps-0")]
    assert logs == ["gpus: 0\n", "gpus: 1\n", "gpus:\n"]


async def test_a_job_is_suspended_resumed_and_deleted_while_the_engine_stays(tmp_path: Path):
    async with LocalEngine(Store(tmp_path)) as engine:
        key = await engine.submit(document("job", workers=2, worker_=program("sleep 300")))
        folder = engine.store.folder(key)

        async def status() -> dict[str, Any]:
            return engine.status(key).model_dump(mode="json")

        await until(status, {"phase": "Running"})
        first = engine.pods(key)
        change_spec(folder, suspend=True)
        await until(status, {"phase": "Suspended"})
        await engine.rest(key)
        assert engine.pods(key) == {}
        change_spec(folder, suspend=False)
        await until(status, {"phase": "Running", "attempt": 2})
        assert engine.pods(key).keys() == first.keys()
        mark_for_deletion(folder, 1_800_000_000.0)
        await engine.rest(key)
        assert not folder.path.exists()


async def test_a_deleted_program_has_its_grace_to_end_in(tmp_path: Path):
    slow = program(
        "exec 2>/dev/null; trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    )
    async with LocalEngine(Store(tmp_path)) as engine:
        key = await engine.submit(document("job", workers=1, worker_=slow))
        folder = engine.store.folder(key)
        log = folder.log(1, "job-worker-0")

        async def logged() -> dict[str, Any]:
            return {"log": log.read_text() if log.exists() else ""}

        await until(logged, {"log": "ready\n"})
        change_spec(folder, suspend=True)
        await until(logged, {"log": "ready\nsaved\n"})
