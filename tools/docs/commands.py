"""Command lines that the documentation shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.docs.markdown import Block, parse
from tools.docs.pages import ROOT

SHELL = ("bash", "sh", "console")
INLINE = re.compile(r"`(pdj [a-z][^`]*)`")
ASSIGNMENT = re.compile(r"^[A-Z_]+=")


@dataclass(frozen=True)
class Command:
    place: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}: {shlex.join(self.words)}"


def commands(page: Path) -> Iterator[Command]:
    """The commands in the blocks of a page, without prompts, comments, pipes and redirections."""
    for block in parse(page.read_text()).blocks:
        for words in commands_of(block):
            yield Command(f"{page.relative_to(ROOT)}:{block.line}", words)


def inline_commands(page: Path) -> Iterator[Command]:
    """The calls of pdj within the text of a page."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for text in INLINE.findall(line):
            yield Command(f"{page.relative_to(ROOT)}:{number}", tuple(shlex.split(text, comments=True)))


def commands_of(block: Block) -> Iterator[tuple[str, ...]]:
    if block.language in SHELL:
        for line in command_lines(block):
            yield from simple_commands(line)


def command_lines(block: Block) -> list[str]:
    """The lines that a reader would type; of a console, those behind a prompt."""
    lines = block.text.replace("\\\n", " ").replace("|\n", "| ").splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith(("$ ", "# "))]
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def simple_commands(line: str) -> Iterator[tuple[str, ...]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words: list[str] = []
    skip = False
    for token in [*lexer, ";"]:
        if token in ("|", "&&", "||", ";", "&", "(", ")"):
            if words:
                yield tuple(words)
            words, skip = [], False
        elif token in (">", ">>", "<"):
            skip = True
        elif skip:
            skip = False
        elif words or not ASSIGNMENT.match(token):
            words.append(token)
