"""docs/tutorial/aws.md: its commands work in their order; with moto as AWS."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "aws.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.usefixtures("made")
def test_every_command_of_the_tutorial_works_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks("yaml"):
        if block.startswith("# file: "):
            (tmp_path / block.splitlines()[0].removeprefix("# file: ")).write_text(block)
    commands = [
        shlex.split(line.removeprefix("$ pdj aws "))
        for block in blocks("console")
        for line in block.splitlines()
        if line.startswith("$ pdj aws ")
    ]
    verbs = [command[0] for command in commands]
    assert (verbs[0], verbs[-1]) == ("init", "destroy")
    for command in commands:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.output, result.exception)
        if command[0] == "init":
            path = tmp_path / "cluster.yaml"
            path.write_text(path.read_text().replace("workerCount: 1", "workerCount: 3", 1))
    assert boto3.client("eks", region_name="us-west-2").list_clusters()["clusters"] == []
    assert (tmp_path / "pv.yaml").exists()


def test_the_gpu_plugin_is_pinned_and_china_is_marked_untested() -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    assert re.search(r"nvidia-device-plugin --version \d+\.\d+\.\d+ .*gfd\.enabled=true", text)
    assert "below 1.35" in text
    assert "regions of China are untested" in text


def test_it_names_every_verb() -> None:
    named = set(re.findall(r"pdj aws (\w+)", TUTORIAL.read_text(encoding="utf-8")))
    assert {command.callback.__name__ for command in app.registered_commands if command.callback} <= named
