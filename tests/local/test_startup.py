"""The command starts fast: a verb imports no more than it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REMOTE = ("aiohttp", "boto3", "fsspec", "paddle")
HEAVY = (*REMOTE, "pydantic", "rich.console", "yaml", "asyncio")
SCRIPT = """import sys
try:
    from paddlejob.cli.main import main; main()
finally:
    print("modules:", *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("verb", "unused"),
    [
        (["--help"], HEAVY),
        (["run", "--help"], (*REMOTE, "yaml", "asyncio")),
        (["get", "nothing", "--local"], (*REMOTE, "yaml")),
        (["list", "--local"], REMOTE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_verb_imports_nothing_heavy_that_it_does_not_use(verb: list[str], unused: tuple[str, ...], tmp_path: Path):
    environment = {**os.environ, "HOME": str(tmp_path), "PADDLEJOB_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-c", SCRIPT, *verb]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    modules = done.stderr.rpartition("modules: ")[2].split()
    assert "paddlejob.cli.main" in modules
    assert not set(modules) & set(unused)
