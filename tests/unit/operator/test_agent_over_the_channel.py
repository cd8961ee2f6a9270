"""The real agent and the real channel: what each says is what the other understands."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from paddlejob.operator.agents.gate import agent_files
from paddlejob.plan import Order, OrderAgents
from paddlejob.plan.world import AgentReport, AgentState
from tests.unit.operator.test_agent_channel import AUTHORITY, Served, serving

PROGRAM = """
import os, signal, sys, time
attempt = os.environ.get("SYS_JOB_ID", "u-1")
print("training", attempt, flush=True)
assert not [name for name in os.environ if name.startswith("PADDLEJOB_AGENT")]
if sys.argv[1] == "fails":
    sys.exit(3 if attempt == "u-1" else 0)
time.sleep(600 if attempt == "u-1" else 0)
"""


@asynccontextmanager
async def agent(directory: Path, served: Served, uid: str, how: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """As the container of a pod starts it."""
    home = directory / uid
    for path, content in {**agent_files(), "ca.crt": AUTHORITY.certificate.decode(), "token": uid}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content)
    given = {"PADDLEJOB_AGENT_URL": f"https://127.0.0.1:{served.port}", "PADDLEJOB_AGENT_ATTEMPT": "1"}
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, str(home / "agent.py"), "--", sys.executable, "-c", PROGRAM, how],
        env={**os.environ, **given},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def reported(served: Served, **expected: AgentReport) -> None:
    """Wait until the agents report this."""
    wanted = {uid.replace("_", "-"): report for uid, report in expected.items()}
    async with asyncio.timeout(20):
        while True:
            found = served.agents.reports(wanted)
            if {uid: (one.attempt, one.state, one.exit_status) for uid, one in found.items()} == {
                uid: (one.attempt, one.state, one.exit_status) for uid, one in wanted.items()
            }:
                return
            await served.news.get()


async def test_programs_end_and_start_again_by_order(tmp_path: Path):
    async with (
        serving(poll_seconds=25) as served,
        agent(tmp_path, served, "uid-0", "fails") as first,
        agent(tmp_path, served, "uid-1", "hangs") as second,
    ):
        await reported(
            served,
            uid_0=AgentReport(1, AgentState.EXITED, 3),
            uid_1=AgentReport(1, AgentState.RUNNING),
        )
        for process in (first, second):
            assert process.stdout and await process.stdout.readline() == b"training u-1\n"
        served.agents.order(OrderAgents(Order.STOP, ("uid-1",), 2, grace=2))
        await reported(served, uid_1=AgentReport(1, AgentState.STOPPED, 143))
        served.agents.order(OrderAgents(Order.START, ("uid-0", "uid-1"), 2, environment={"SYS_JOB_ID": "u-2"}))
        for process in (first, second):
            assert process.stdout
            output = [line for line in (await process.stdout.read()).decode().splitlines() if line]
            assert output == ["paddlejob: attempt 2 begins in place", "training u-2"]
            assert await process.wait() == 0


async def test_an_agent_that_is_released_exits_as_its_program_did(tmp_path: Path):
    async with serving(poll_seconds=25) as served, agent(tmp_path, served, "uid-0", "fails") as process:
        await reported(served, uid_0=AgentReport(1, AgentState.EXITED, 3))
        served.agents.order(OrderAgents(Order.RELEASE, ("uid-0",), 1))
        assert await process.wait() == 3
