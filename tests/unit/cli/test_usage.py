"""A command line that cannot be parsed is one message: what is wrong, then the remedy."""

from __future__ import annotations

import pytest

from tests.support.called_pdj import pdj


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "train.py", "--workers", "0"], "--workers: must be greater than or equal to 1; see `pdj run --help`"),
        (["submit", "train.py", "--ps", "two"], "--ps: must be a valid integer; see `pdj submit --help`"),
        (["run", "train.py", "--worker", "2"], "--worker: no such option; did you mean --workers?"),
        (["list", "-x"], "-x: no such option; see `pdj list --help`"),
        (["--quiet"], "--quiet: no such option; see `pdj --help`"),
        (["run", "train.py", "--env"], "--env: requires an argument; see `pdj run --help`"),
        (["list", "--history=3"], "--history: does not take a value; see `pdj list --help`"),
        (["get"], "JOB: is missing; see `pdj get --help`"),
        (["get", "mine", "yours", "theirs"], "yours theirs: unexpected argument; see `pdj get --help`"),
        (
            ["get", "mine", "-o", "xml"],
            "--output: 'xml' is not one of 'table', 'wide', 'json', 'yaml'; see `pdj get --help`",
        ),
        (["target", "moon"], "TARGET: 'moon' is not one of 'local', 'cluster'; see `pdj target --help`"),
        (["data", "steal"], "steal: no such command; did you mean stage?"),
        (["data", "mine"], "mine: no such command; see `pdj data --help`"),
        (["data", "stage"], "SRC: is missing; see `pdj data stage --help`"),
        (["fly"], "unknown command fly; list all commands with `pdj --help`"),
    ],
)
def test_a_wrong_command_line_is_one_message_with_the_remedy(arguments: list[str], message: str):
    done = pdj(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"pdj: {message}\n")


def test_without_a_verb_the_help_is_printed():
    assert "Train jobs on this machine." in pdj().stderr
