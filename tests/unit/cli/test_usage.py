"""A command line that cannot be parsed is one message: what is wrong, then the remedy."""

from __future__ import annotations

import pytest

from paddlejob.cli.main import SYNONYMS, VERBS
from tests.support.called_pdj import pdj


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "train.py", "--workers", "0"], "--workers must be greater than or equal to 1; see `pdj run --help`"),
        (["submit", "train.py", "--ps", "two"], "--ps must be a valid integer; see `pdj submit --help`"),
        (["run", "train.py", "--worker", "2"], "--worker: no such option; did you mean --workers?"),
        (
            ["run", "train.py", "--epochs", "3"],
            "--epochs: no such option; options of your program go after `--`, as in `pdj run train.py -- --epochs`",
        ),
        (
            ["list", "--phase", "done"],
            "--phase: 'done' is not one of Created, Pending, Starting, Running, Restarting, Suspended, Completed, "
            "Failed, Interrupted, Deleting, Damaged",
        ),
        (["list", "-x"], "-x: no such option; see `pdj list --help`"),
        (["--quiet"], "--quiet: no such option; see `pdj --help`"),
        (["run", "train.py", "--env"], "--env: requires an argument; see `pdj run --help`"),
        (["list", "--history=3"], "--history does not take a value; see `pdj list --help`"),
        (["get"], "JOB is missing; see `pdj get --help`"),
        (["get", "mine", "yours", "theirs"], "yours theirs: unexpected argument; see `pdj get --help`"),
        (
            ["get", "mine", "-o", "xml"],
            "--output: 'xml' is not one of 'table', 'wide', 'json', 'yaml'; see `pdj get --help`",
        ),
        (["target", "moon"], "TARGET: 'moon' is not one of 'local', 'cluster'; see `pdj target --help`"),
        (["data", "steal"], "steal: no such command; did you mean stage?"),
        (["data", "mine"], "mine: no such command; see `pdj data --help`"),
        (["data", "stage"], "SRC is missing; see `pdj data stage --help`"),
        (["ls"], "unknown command ls; did you mean `pdj list`?"),
        (["stop", "mnist"], "unknown command stop; did you mean `pdj suspend` or `pdj delete`?"),
        (["sumbit", "train.py"], "unknown command sumbit; did you mean `pdj submit`?"),
        (["fly"], "unknown command fly; list all commands with `pdj --help`"),
    ],
)
def test_a_wrong_command_line_is_one_message_with_the_remedy(arguments: list[str], message: str):
    done = pdj(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"pdj: {message}\n")


@pytest.mark.parametrize("verb", SYNONYMS)
def test_a_verb_of_another_tool_leads_to_ours_for_the_same(verb: str):
    assert verb not in VERBS
    assert {meant.partition(" ")[0] for meant in SYNONYMS[verb]} <= VERBS.keys()


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",)])
def test_without_a_verb_the_help_is_printed_in_groups(arguments: tuple[str, ...]):
    done = pdj(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nTrain:\n  run     Train jobs on this machine.\n" in done.stdout


def test_every_verb_takes_a_short_option_for_its_help():
    assert pdj("data", "split", "-h").stdout == pdj("data", "split", "--help").stdout
