"""A command line that cannot be parsed, as one message: what is wrong, then the remedy."""

from __future__ import annotations

import difflib
import re
from typing import Any

import typer

from paddlejob.errors import sentence

UsageError: type[Exception] = typer.BadParameter.__base__  # type: ignore[assignment]
"""Of click, or of the copy of click that newer versions of typer contain; typer exports only this subclass."""

RUN_PROGRAMS = ("run", "plan", "submit")
"""Verbs that take a program, whose own options follow `--`."""
POSSIBLE, LIKELY = 0.6, 0.8
"""How alike two names are if one may have been meant. An option that may be the program's has to be more alike."""


def usage_message(error: Any, command: str) -> str:
    """`command` is the one that was typed, for errors that do not know theirs."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else command
    subject, problem = _problem(error)
    of_program = problem == "no such option" and getattr(context, "info_name", "") in RUN_PROGRAMS
    close = difflib.get_close_matches(subject, _known(problem, context), 1, LIKELY if of_program else POSSIBLE)
    if of_program and not close:
        remedy = f"options of your program go after `--`, as in `{path} train.py -- {subject}`"
    else:
        remedy = f"did you mean {close[0]}?" if close else f"see `{path} --help`"
    return f"{sentence(subject, problem)}; {remedy}"


def _problem(error: Any) -> tuple[str, str]:
    """The part of the command line, and what is wrong with it."""
    text = str(error.message).rstrip(".")
    parameter, option = getattr(error, "param", None), getattr(error, "option_name", None)
    if parameter is not None:
        return _name(parameter), _reason(text) or "is missing"
    if option is not None:
        return option, "no such option" if "No such option" in text else text.rpartition("' ")[2]
    if extra := re.search(r" \((.*)\)$", text):
        return extra[1], "unexpected argument"
    if command := re.match(r"No such command '(.*?)'", text):
        return command[1], "no such command"
    return "usage", text


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(parameter.opts[0])


def _reason(text: str) -> str:
    """Without the phrases of the library that checks values."""
    return text.removeprefix("Value error, ").replace("Input should be", "must be").partition(", unable to")[0]


def _known(problem: str, context: Any) -> list[str]:
    """What may have been meant."""
    if not context or not problem.startswith("no such"):
        return []
    if problem == "no such command":
        return list(context.command.list_commands(context))
    return [one for parameter in context.command.params for one in parameter.opts if one.startswith("--")]
