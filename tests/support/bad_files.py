"""Job files that went wrong the way people and editors get them wrong, from a seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
VALUES: tuple[Any, ...] = (
    None, "", "x" * 5000, 10**30, -1, 0, 1.5, True, [], {}, [[]], [None], {"a": None}, {"": ""}, "：", "“python”",
    "\u3000", {1: 2}, {True: 1}, float("nan"), "../../../..", "train.py --epochs 3",
)  # fmt: skip
KEYS = (
    "worker",
    "Worker",
    "work er",
    "replica",
    "image",
    "gpu",
    "containers",
    "spec",
    "metadata",
    "1",
    "",
    "items",
    "template",
)
KINDS = ("Job", "List", "paddlejob", "Pod", "", 3, None, ["PaddleJob"])
VERSIONS = ("kubeflow.org/v1", "batch/v1", "v1", "", None, 1)
LINES = (
    "\x01",
    "\0",
    "- - - -",
    "[" * 3000,
    "a: &a [*a]",
    "? [a]",
    "!!binary x",
    "%YAML 9",
    "'",
    "]",
    "<<: 1",
    "a: 0x_",
    "...",
)
WIDE = {":": "：", ",": "，", '"': "“", "[": "【", "-": "－", " ": "\u3000", "#": "＃"}


def good_files() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))]
    return [text for text in texts if "kind: PaddleJob" in text]


def bad_files(seed: int) -> Iterator[bytes]:
    """Without end; a few of them are valid by chance."""
    chance = random.Random(seed)
    good = good_files()
    while True:
        text = chance.choice(good)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            text = chance.choice(CHANGES)(text, chance)
        yield chance.choice(ENCODINGS)(text, chance)


def _edit_tree(text: str, chance: random.Random) -> str:
    try:
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
        changed = copy.deepcopy(documents)
        for document in changed:
            _break(document, chance)
        return yaml.safe_dump_all(changed, allow_unicode=True)
    except (yaml.YAMLError, ValueError):
        return text


def _break(document: Any, chance: random.Random) -> None:
    nodes = list(_containers(document))
    if not nodes:
        return
    node = chance.choice(nodes)
    key = chance.choice(list(node) if isinstance(node, dict) else list(range(len(node))))
    what = chance.randrange(6)
    if what == 0:
        node[key] = copy.deepcopy(chance.choice(VALUES))
    elif what == 1:
        del node[key]
    elif what == 2 and isinstance(node, dict):
        node[chance.choice(KEYS)] = node.pop(key)
    elif what == 3:
        _move(node, key, chance.choice(nodes), chance)
    elif what == 4 and isinstance(document, dict):
        document["kind"] = chance.choice(KINDS)
    elif isinstance(document, dict):
        document["apiVersion"] = chance.choice(VERSIONS)


def _move(node: Any, key: Any, target: Any, chance: random.Random) -> None:
    value = copy.deepcopy(node.pop(key))
    if isinstance(target, dict):
        target[key if isinstance(key, str) else chance.choice(KEYS)] = value
    else:
        target.append(value)


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list) and value:
        yield value
        for child in value.values() if isinstance(value, dict) else value:
            yield from _containers(child)


def _edit_line(change: Callable[[str, random.Random], str]) -> Callable[[str, random.Random], str]:
    def edit(text: str, chance: random.Random) -> str:
        lines = text.split("\n")
        number = chance.randrange(len(lines))
        lines[number] = change(lines[number], chance)
        return "\n".join(lines)

    return edit


def _widen(line: str, chance: random.Random) -> str:
    found = [character for character in line if character in WIDE]
    return line.replace(character, WIDE[character], 1) if found and (character := chance.choice(found)) else line


def _truncate(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _drop_character(text: str, chance: random.Random) -> str:
    position = chance.randrange(len(text) + 1)
    return text[:position] + text[position + 1 :]


CHANGES = (
    _edit_tree,
    _edit_tree,
    _edit_tree,
    _truncate,
    _drop_character,
    _edit_line(_widen),
    _edit_line(lambda line, _: "\t" + line.lstrip()),
    _edit_line(lambda line, chance: " " * chance.randrange(1, 5) + line),
    _edit_line(lambda line, chance: line[chance.randrange(1, 5) :]),
    _edit_line(lambda line, _: f"{line}\n{line}"),
    _edit_line(lambda line, chance: chance.choice(LINES)),
    _edit_line(lambda line, chance: line + chance.choice(LINES)),
)
ENCODINGS: tuple[Callable[[str, random.Random], bytes], ...] = (
    *(lambda text, _: text.encode("utf-8", "replace"),) * 9,
    lambda text, _: f"# 训练\n{text}".encode("gb18030", "replace"),
    lambda text, _: text.encode("utf-16"),
    lambda text, chance: text.encode() + chance.randbytes(8),
)
