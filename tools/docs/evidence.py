"""Whether the tests that a page names for a block exist and run its commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.docs.commands import commands_of
from tools.docs.markdown import Block
from tools.docs.pages import ROOT


@dataclass(frozen=True)
class Module:
    """A file of tests: the source of each test, and of everything that its tests share."""

    tests: dict[str, str]
    shared: str


def problems_of_tests(page: str, block: Block, names: str) -> Iterator[str]:
    """A test need not repeat a command literally, but each verb and option of `pdj` must occur in one of the tests.

    A module that names the page takes the commands from it.
    """
    sources = []
    for name in names.split(", "):
        path, _, test = name.partition("::")
        if not (ROOT / path).is_file():
            yield f"{path} does not exist"
        elif test not in (module := module_of(ROOT / path)).tests:
            yield f"{path} has no test {test!r}; name the test that runs this block, as PATH::TEST"
        else:
            sources += [module.tests[test], module.shared]
    source = "\n".join(sources)
    if sources and Path(page).name not in source:
        yield from (f"no named test uses {word}" for word in wanted(block) if not mentions(source, word))


def mentions(source: str, word: str) -> bool:
    """Whether a test uses an option, or a verb as an argument or within a command line."""
    before = r"(?<![\w-])" if word.startswith("-") else r"(?:['\"]|pdj )"
    return re.search(rf"{before}{word}(?![\w-])", source) is not None


def wanted(block: Block) -> list[str]:
    """Verbs and long options of pdj, each once."""
    found: dict[str, None] = {}
    for words in commands_of(block):
        if words[0] == "pdj":
            arguments = words[1 : words.index("--")] if "--" in words else words[1:]
            found |= dict.fromkeys(word.split("=")[0] for word in arguments[1:] if word.startswith("--"))
            found[arguments[0]] = None
    return list(found)


@cache
def module_of(path: Path) -> Module:
    text = path.read_text()
    tree = ast.parse(text)
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [node for node in tests if node.name.startswith("test_")]
    rest = [node for node in tree.body if node not in tests]
    shared = [ast.get_source_segment(text, node) or "" for node in rest]
    shared += [module_of(file).shared for node in rest for file in _helpers(node)]
    return Module({node.name: ast.get_source_segment(text, node) or "" for node in tests}, "\n".join(shared))


def _helpers(node: ast.AST) -> Iterator[Path]:
    """Files of tests/support that an import names."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.support."):
        yield ROOT / f"{(node.module or '').replace('.', '/')}.py"
