"""The verbs are an interface: each has its name, its help, and its position in the list."""

from __future__ import annotations

import pytest

from tests.support.called_pdj import pdj

GROUPS = {
    "Train": "run submit rerun init",
    "See": "list get why watch logs metrics web code",
    "Change": "scale suspend resume delete clean",
    "Check": "validate plan doctor convert",
    "Clusters and data": "target install uninstall operator crd aws data",
}
VERBS = " ".join(GROUPS.values()).split()


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_lists_the_verbs_in_the_order_of_a_users_work(group: str):
    listed = pdj("--help").stdout.partition(f"\n{group}:\n")[2].partition("\n\n")[0].splitlines()
    assert " ".join(line.split()[0] for line in listed) == GROUPS[group]


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_explains_itself_and_the_list_of_verbs_says_the_same(verb: str):
    done = pdj(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    usage, _, text = done.stdout.partition("\n")
    assert usage.startswith(f"Usage: pdj {verb} [OPTIONS]")
    assert "{" not in usage and "}" not in usage
    assert text.strip()
    assert "\nOptions:\n" in text or "\nCommands:\n" in text


def test_the_help_of_a_verb_shows_arguments_apart_from_options_and_both_only_where_there_are_any():
    scale = pdj("scale", "--help").stdout
    arguments, _, options = scale.partition("\nArguments:\n")[2].partition("\nOptions:\n")
    assert [line.split()[0] for line in arguments.splitlines() if line] == ["JOB", "WORKERS"]
    assert "--namespace" in options and "WORKERS " not in options
    assert "Arguments:" not in pdj("list", "--help").stdout
    assert scale.startswith("Usage: pdj scale [OPTIONS] JOB WORKERS\n")


def test_what_follows_two_dashes_is_an_argument_of_verbs_that_run_no_program():
    done = pdj("get", "--", "--help")
    assert (done.returncode, "Usage" in done.stdout) == (2, False)


def test_a_verb_that_is_nearly_right_is_suggested():
    assert pdj("valdate", "x").stderr == "pdj: unknown command valdate; did you mean `pdj validate`?\n"
