"""GitHub's Markdown, which the pages are written in, as Python-Markdown needs it."""

from __future__ import annotations

import re

from tools.docs.markdown import FENCE

COMMENT = re.compile(r"^\s*<!-- .* -->$")
ITEM = re.compile(r"^\s*([-*]|\d+\.) ")
JOINED = re.compile(
    r"(?<=[。，；：、）！？])\n[ ]*(?=[^\s\-#|>!<`\d])|(?<=[\u4e00-\u9fff])\n[ ]*(?=[\u4e00-\u9fff\[（《“*])"
)
"""Line ends within Chinese text, which browsers would show as spaces."""


def to_python_markdown(text: str) -> str:
    """Blank lines around lists, tables and blocks, four spaces for what belongs to an item, and no comments."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        opened = FENCE.match(line)
        if not fence and COMMENT.match(line):
            continue
        if not fence and lines and line.strip() and lines[-1].strip() and _begins_block(line, lines[-1]):
            lines.append("")
        indented = "  " + line if line.startswith("  ") and (not fence or fence.startswith(" ")) else line
        lines.append(indented)
        if fence and line.strip() == fence.strip():
            fence = ""
        elif not fence and opened:
            fence = opened[1] + opened[2]
    return "\n".join(lines) + "\n"


def _begins_block(line: str, before: str) -> bool:
    if FENCE.match(line) or FENCE.match(before):
        return True
    if ITEM.match(line):
        return not ITEM.match(before) and not before.startswith(" ")
    return line.startswith("|") and not before.startswith("|")


def join_chinese_lines(text: str) -> str:
    """The text without line ends between Chinese characters; blocks of code stay as they are."""
    parts = re.split(r"(^[ ]*```.*?^[ ]*```[ ]*$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else JOINED.sub("", part) for number, part in enumerate(parts))
