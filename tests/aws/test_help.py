"""Every verb explains itself with an example that its own options understand."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app

VERBS = [
    "init",
    "render",
    "validate",
    "up",
    "status",
    "scale",
    "upgrade",
    "kubeconfig",
    "token",
    "storage",
    "policy",
    "destroy",
    "data",
]


def test_the_verbs_are_those_of_the_help() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output.split("Commands:")[1]
    assert [line.split()[0] for line in shown.strip().splitlines()] == VERBS


@pytest.mark.parametrize("verb", [*VERBS[:-1], "data attach", "data detach"])
def test_the_help_of_a_verb_has_an_example_that_can_be_typed(verb: str) -> None:
    path = verb.split()
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*path, "--help"])
    assert shown.exit_code == 0
    (line,) = [line.strip() for line in shown.output.splitlines() if line.strip().startswith("Example: ")]
    program, group, *typed = shlex.split(line.removeprefix("Example: "))
    assert (program, group, typed[: len(path)]) == ("pdj", "aws", path)
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    command.make_context(verb, typed[len(path) :])  # rejects unknown options
