"""Jobs of one worker that take no time, on an embedded engine with real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from paddlejob.api.types import Phase, Status
from paddlejob.engine.backend import Key
from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.store import JobFolder
from tests.support.builders import document, template

MACHINE = Machine("laptop", cpus=4, memory=8 << 30)
FOREVER = ["sleep", "300"]


def tiny_job(name: str, command: list[str], **spec: Any) -> dict[str, Any]:
    made = template(command=command)
    made["spec"]["terminationGracePeriodSeconds"] = 1
    return document(name, workers=1, worker_={"template": made}, **spec)


def status(folder: JobFolder) -> Status:
    found = folder.job()
    assert found is not None
    return found.status


async def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends, "it never came true"
        await asyncio.sleep(0.01)


async def idle(engine: LocalEngine, key: Key) -> None:
    await asyncio.wait_for(engine.wait_until_idle(key), 30)


async def running(engine: LocalEngine, key: Key) -> JobFolder:
    folder = engine.store.folder(key)
    await until(lambda: status(folder).phase is Phase.RUNNING)
    return folder
