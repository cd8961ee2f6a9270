"""The engine's side of the supervisor: starts and ends containers, and passes on reports about them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paddlejob.errors import NotPossible
from paddlejob.local.sandbox.mounts import Mount

SOURCE = Path(__file__).parents[3]
START = "import sys; sys.path.insert(0, sys.argv[1]); from paddlejob.local.sandbox.supervisor import main; main()"


@dataclass(frozen=True)
class ProcessSpec:
    """A container, ready to start."""

    id: str
    argv: list[str]
    env: dict[str, str] = field(repr=False)
    cwd: str
    log: str
    stage: str
    mounts: list[Mount]
    hostname: str = ""
    """If given, the container has a host name of its own where namespaces are available."""


class Processes:
    def __init__(self, on_lost: Callable[[], None], on_error: Callable[[Exception], None]) -> None:
        self._on_lost = on_lost
        self._on_error = on_error
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self.isolated = False
        self.why_not_isolated = ""

    async def open(self, on_report: Callable[[str, dict[str, Any]], None]) -> None:
        """`on_report(id, report)` gets {started: pid}, {failed: message}, {ended: exit code, oom}, {gone: True}."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            START,
            str(SOURCE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        first = await self._read_report()
        if first is None:
            raise NotPossible("the container supervisor did not start; see the lines above")
        self.isolated, self.why_not_isolated = first["isolated"], first["why"]
        self._listening = asyncio.create_task(self._listen(on_report))

    async def close(self) -> None:
        """Kill all containers."""
        assert self._process and self._process.stdin
        self._on_lost = lambda: None
        self._process.stdin.close()
        await self._process.wait()
        if self._listening:
            await self._listening

    def start(self, spec: ProcessSpec) -> None:
        self._request(asdict(spec))

    def terminate(self, name: str) -> None:
        """Send SIGTERM to the main process of a container."""
        self._request({"id": name, "kill": False})

    def kill(self, name: str) -> None:
        self._request({"id": name, "kill": True})

    def _request(self, request: dict[str, Any]) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write(json.dumps(request).encode() + b"\n")

    async def _listen(self, on_report: Callable[[str, dict[str, Any]], None]) -> None:
        try:
            while (report := await self._read_report()) is not None:
                on_report(report.pop("id"), report)
            self._on_lost()
        except Exception as error:
            self._on_error(error)

    async def _read_report(self) -> dict[str, Any] | None:
        assert self._process and self._process.stdout
        line = await self._process.stdout.readline()
        return json.loads(line) if line else None
