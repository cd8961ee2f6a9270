"""Commands in the documentation exist: verbs, options, targets, modules and files."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cli.main import VERBS, load_verb
from tools.docs.commands import Command, commands, inline_commands
from tools.docs.pages import DOCS, ENGLISH_ONLY, ROOT

PAGES = [
    *(path for path in sorted(DOCS.rglob("*.md")) if not str(path.relative_to(DOCS)).startswith(ENGLISH_ONLY)),
    ROOT / "README.md",
    ROOT / "README.zh-CN.md",
    ROOT / "CONTRIBUTING.md",
]
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_of_a_page_exists_with_its_options_and_files(page: Path):
    shown = list(commands(page))
    wrong = [problem for command in shown if (problem := problem_of_pdj(command))]
    wrong += [f"{command}: no {name}" for command in shown for name in missing(command)]
    wrong += [problem for command in inline_commands(page) if (problem := problem_of_options(command))]
    assert wrong == []


def test_an_unknown_option_is_noticed():
    assert "no such option" in str(problem_of_pdj(Command("here", ("pdj", "list", "--everything")))).lower()
    assert "no such option" in str(problem_of_pdj(Command("here", ("pdj", "aws", "up", "--fast")))).lower()
    assert "no verb" in str(problem_of_pdj(Command("here", ("pdj", "enlist"))))
    assert list(missing(Command("here", ("make", "tea")))) == ["target tea"]


def problem_of_pdj(command: Command) -> str:
    words = command.words[1:] if command.words[:2] == ("kubectl", "pdj") else command.words
    if Path(words[0]).name != "pdj" or words[1].startswith("--"):
        return ""
    verb, *arguments = words[1:]
    if verb not in VERBS:
        return f"{command}: no verb {verb}"
    try:
        parse_verb(verb_of(verb), verb, arguments)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what Typer raises for wrong usage, whatever its version calls it
            raise
        return f"{command}: {error.format_message()}"
    return ""


def problem_of_options(command: Command) -> str:
    """Text often leaves out arguments, so only what is there must exist."""
    verb, *arguments = command.words[1:]
    if verb not in VERBS:
        return "" if verb.isupper() else f"{command}: no verb {verb}"
    known = options_of(verb_of(verb))
    options = [word.split("=")[0] for word in before_dashes(arguments) if word.startswith("-") and word != "-"]
    unknown = [option for option in options if option not in known]
    return f"{command}: no option {', '.join(unknown)}" if unknown else ""


@cache
def verb_of(name: str) -> Any:
    return load_verb(name)


def before_dashes(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def options_of(command: Any) -> set[str]:
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    for inner in getattr(command, "commands", {}).values():
        known |= options_of(inner)
    return known


def parse_verb(command: Any, name: str, arguments: list[str], parent: Any = None) -> None:
    """Parse as the command line does, without running anything."""
    context = command.make_context(name, list(arguments), parent=parent)
    if hasattr(command, "commands"):
        inner_name, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        parse_verb(inner, inner_name, rest, context)


def missing(command: Command) -> list[str]:
    program, *words = command.words
    if program == "make":
        names = [word for word in words if re.fullmatch(r"[a-z][a-z0-9-]*", word)]
        return [f"target {name}" for name in names if name not in TARGETS]
    if Path(program).name in ("python", "python3") and words[:1] == ["-m"]:
        return [] if importlib.util.find_spec(words[1]) else [f"module {words[1]}"]
    roots = ("deploy/", "examples/", "tools/", "tests/", "src/")
    return [f"file {word}" for word in words if word.startswith(roots) and not (ROOT / word).exists()]
