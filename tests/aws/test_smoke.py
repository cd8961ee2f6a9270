"""tools/aws_smoke.py, the script for a real account: its steps work in their order; with moto as AWS."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from tools.aws_smoke import Smoke

from .aws_state import inventory


class Simulated(Smoke):
    """Runs the commands in this process. moto accepts an administrator that does not exist."""

    def pdj(self, *arguments: str, check: bool = True) -> int:
        result = CliRunner().invoke(app, [*arguments, "--assets", str(self.assets)])
        assert result.exit_code == 0 or not check, (arguments, result.output, result.exception)
        return result.exit_code


@pytest.mark.usefixtures("made", "versions")
def test_every_step_of_the_smoke_test_works_and_nothing_is_left(tmp_path: Path) -> None:
    before = inventory()
    smoke = Simulated(tmp_path)
    smoke.run("us-west-2", "us-west-2a")
    assert inventory() == before
    assert len(smoke.results) == 13
    failed = [line for line in smoke.results if not line.startswith("ok")]
    assert failed == ["FAILED a change that fails is rolled back"]
