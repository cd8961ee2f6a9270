"""Jobs for tests of `pdj web` without a browser: views, and stored jobs whose programs have printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient

from paddlejob.api.types import Status
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.targets.cluster.parsing import job_view
from paddlejob.targets.views import JobView
from tests.support.builders import NOON, document

WebClient = TestClient[web.Request, web.Application]
JOB = "/api/jobs/local/default/mnist"
"""The URL of the job in answers of a server."""


async def refusal(client: WebClient, method: str, path: str, **options: Any) -> tuple[int, str]:
    answer = await client.request(method, path, **options)
    return answer.status, (await answer.json())["error"]


async def log_in(client: WebClient, token: str) -> str:
    """The header of requests of the session that the token starts."""
    answer = await client.post("/api/session", json={"token": token})
    assert answer.status == 200, await answer.text()
    return f"Bearer {(await answer.json())['secret']}"


def view(name: str = "mnist", *, status: dict[str, Any] | None = None, flags: str = "", **options: Any) -> JobView:
    made = document(name, **options)
    made["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": "2027-01-15T08:00:00Z"}
    return job_view({**made, "status": status or {}}, flags=flags)


def stored(store: JobStore, name: str = "mnist", logs: dict[str, str] | None = None, **status: Any) -> JobFolder:
    """A job of this machine that nothing runs, with logs by `attempt/replica`."""
    folder, lock = store.begin(document(name), RunOptions(), NOON)
    lock.release()
    folder.write_status(Status.model_validate(status))
    for path, text in (logs or {}).items():
        attempt, replica = path.split("/")
        log = folder.log(int(attempt), f"{name}-{replica}")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
    return folder


def steps(count: int, first: int = 1) -> str:
    return "".join(f"step {step}/{count} loss={1 / step:.6f}\n" for step in range(first, count + 1))


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
