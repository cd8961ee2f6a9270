"""The engine's side of the nursery: start a container, end it, hear what became of it."""

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


class Processes:
    """`on_report(id, words)` hears: started (a pid), failed (why), ended (an exit code, oom), gone."""

    def __init__(self, on_report: Callable[[str, dict[str, Any]], None], on_lost: Callable[[], None]) -> None:
        self._on_report = on_report
        self._on_lost = on_lost
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self.isolated = False
        self.why_not_isolated = ""

    async def open(self) -> None:
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
        first = await self._hear()
        if first is None:
            raise NotPossible("the process that starts containers did not start; see the lines above")
        self.isolated, self.why_not_isolated = first["isolated"], first["why"]
        self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """End all containers at once."""
        assert self._process and self._process.stdin
        self._on_lost = lambda: None
        self._process.stdin.close()
        await self._process.wait()
        if self._listening:
            await self._listening

    def start(self, launch: ProcessSpec) -> None:
        self._ask(asdict(launch))

    def end(self, name: str) -> None:
        """Ask all processes of a container to end."""
        self._ask({"id": name, "kill": False})

    def kill(self, name: str) -> None:
        self._ask({"id": name, "kill": True})

    def _ask(self, request: dict[str, Any]) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write(json.dumps(request).encode() + b"\n")

    async def _listen(self) -> None:
        while (words := await self._hear()) is not None:
            self._on_report(words.pop("id"), words)
        self._on_lost()

    async def _hear(self) -> dict[str, Any] | None:
        assert self._process and self._process.stdout
        line = await self._process.stdout.readline()
        return json.loads(line) if line else None
