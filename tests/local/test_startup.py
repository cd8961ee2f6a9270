"""The command starts fast: the help imports nothing but itself."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.pdj import START

HEAVY = ("pydantic", "rich.console", "yaml", "aiohttp", "asyncio", "boto3", "fsspec", "paddle")


def test_the_help_imports_nothing_heavy():
    script = (
        "import sys\ntry:\n    from paddlejob.cli.main import main; main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    assert "run" in done.stdout
    assert not set(done.stderr.split()) & set(HEAVY)


def test_the_help_takes_less_than_three_tenths_of_a_second_of_the_processor():
    def cost() -> float:
        before = os.times()
        subprocess.run([*START, "--help"], capture_output=True, check=True)
        after = os.times()
        return after.children_user - before.children_user + after.children_system - before.children_system

    assert min(cost() for _ in range(3)) < 0.3
