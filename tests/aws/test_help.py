"""Every verb explains itself with an example that its own options understand."""

from __future__ import annotations

import shlex

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
]


def test_the_verbs_are_those_of_the_help() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output.split("Commands:")[1]
    assert [line.split()[0] for line in shown.strip().splitlines()] == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_an_example_that_can_be_typed(verb: str) -> None:
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [verb, "--help"])
    assert shown.exit_code == 0
    (line,) = [line.strip() for line in shown.output.splitlines() if line.strip().startswith("Example: ")]
    program, group, named, *arguments = shlex.split(line.removeprefix("Example: "))
    assert (program, group, named) == ("pdj", "aws", verb)
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    command.make_context(verb, arguments)  # rejects unknown options
