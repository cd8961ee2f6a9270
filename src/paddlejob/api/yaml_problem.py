"""What is wrong with the YAML of a file, with the remedy: tabs, full-width punctuation, and what the parser says."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

FULL_WIDTH = {
    "：": ":", "，": ",", "“": '"', "”": '"', "‘": "'", "’": "'", "［": "[", "］": "]", "｛": "{", "｝": "}", "【": "[",
    "】": "]", "＃": "#", "－": "-", "\u3000": " ", "\xa0": " ",
}  # fmt: skip
"""Punctuation of a Chinese input method or a word processor, and what YAML needs instead."""
NAMES = {"\u3000": "full-width space", "\xa0": "non-breaking space"}
MOST_SHOWN = 60
COMMENT = re.compile(r"(^|\s)#.*")


class YamlProblem(yaml.YAMLError):
    """A fact, the remedy, and the position if it is known."""

    def __init__(self, problem: str, remedy: str = "", mark: Any = None, line: int = 0, column: int = 0) -> None:
        self.problem = problem
        self.remedy = remedy
        self.line = mark.line + 1 if mark else line
        self.column = mark.column + 1 if mark else column
        super().__init__(f"{problem}; {remedy}" if remedy else problem)


def describe(error: yaml.YAMLError, text: str) -> YamlProblem:
    """The error of a parser, explained by the characters near its position where possible."""
    if isinstance(error, YamlProblem):
        return error
    problem = " ".join(str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split())
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)
    if mark is None and isinstance(position, int):
        before = text[:position]
        return YamlProblem(f"invalid YAML: {problem}", "remove it", line=before.count("\n") + 1, column=1)
    near = _near(error, text.splitlines())
    cause = tab_in(near) or full_width_in(near)
    if cause:
        return cause
    return YamlProblem(f"invalid YAML: {problem}", _remedy(problem), mark)


def tab_in(lines: list[tuple[int, str]]) -> YamlProblem | None:
    for number, line in lines:
        indentation = line[: len(line) - len(line.lstrip())]
        if "\t" in indentation:
            column = indentation.index("\t") + 1
            return YamlProblem("a tab indents this line", "YAML allows only spaces", line=number, column=column)
    return None


def full_width_in(lines: list[tuple[int, str]]) -> YamlProblem | None:
    for number, line in lines:
        code = COMMENT.sub("", line)
        found = next((index for index, character in enumerate(code) if character in FULL_WIDTH), None)
        if found is not None:
            problem, remedy = full_width(code[found])
            return YamlProblem(problem, remedy, line=number, column=found + 1)
    return None


def full_width(character: str) -> tuple[str, str]:
    """The problem and the remedy for one character of FULL_WIDTH."""
    name, instead = NAMES.get(character, f"character {character}"), FULL_WIDTH[character]
    written = {" ": "an ordinary space", ":": "`:` and a space"}.get(instead, f"`{instead}`")
    return f"the {name} is not YAML punctuation", f"write {written}"


def first_full_width(text: str) -> str:
    """The first character of FULL_WIDTH in a text; empty if there is none."""
    return next((character for character in text if character in FULL_WIDTH), "")


def show(value: object) -> str:
    """A value as a file would contain it, shortened."""
    text = f'"{value}"' if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def numbered(text: str) -> list[tuple[int, str]]:
    return list(enumerate(text.splitlines(), start=1))


def _near(error: yaml.YAMLError, lines: list[str]) -> list[tuple[int, str]]:
    """The lines from the start of the broken construct, at most three, to the line after which the parser gave up."""
    marks = [getattr(error, name, None) for name in ("context_mark", "problem_mark")]
    numbers = [mark.line for mark in marks if mark]
    last = max(numbers, default=0)
    first = max(min(numbers, default=0), last - 3)
    chosen = [last, *range(last - 1, max(first, 0) - 1, -1), last - 1]
    return [(number + 1, lines[number]) for number in dict.fromkeys(chosen) if 0 <= number < len(lines)]


def _remedy(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "check the indentation, and quote a value that contains `: `"
    if "could not find expected ':'" in problem or "simple key" in problem:
        return "check for a missing `:` or quote"
    if "unexpected end of stream" in problem or "found unexpected document" in problem:
        return "close the quote"
    if "expected ',' or" in problem or "flow" in problem:
        return "close the bracket and separate values by commas"
    return "check the indentation, quotes and brackets of this line and the one before"
