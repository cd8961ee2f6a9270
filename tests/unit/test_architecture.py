"""Which package may import which, the purity of api and plan, and the standard library in the sandbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import paddlejob
from tests.support.architecture import (
    beyond_the_standard_library,
    forbidden_arrows,
    imports,
    impurities,
    sources,
    unused_arrows,
)

ROOT = Path(paddlejob.__file__).parent
OPERATOR = {"objects", "kube", "engine", "plan", "progress", "api", "contract", "errors"}
"""What the operator imports, and clients as well."""
ARROWS = {
    "contract": set[str](),
    "errors": set[str](),
    "delays": set[str](),
    "api": {"contract", "errors"},
    "plan": {"api", "contract", "delays", "text"},
    "progress": {"api", "text"},
    "engine": {"plan", "api", "progress", "delays", "logs", "redaction"},
    "lines": set[str](),
    "text": set[str](),
    "redaction": set[str](),
    "kube": {"errors", "delays", "lines"},
    "objects": {"kube", "plan", "api", "contract", "redaction"},
    "logs": {"objects", "kube", "plan", "progress", "api", "contract", "errors", "lines", "redaction", "text"},
    "operator": {"delays", "logs", "redaction", *OPERATOR},
    "home": {"errors"},
    "locks": {"errors"},
    "local": {"agent", "engine", "logs", "plan", "progress", "api", "contract", "delays", "errors", "home", "locks"},
    "launch": set[str](),
    "agent": set[str](),
    "data": {"errors", "locks"},
    "code": {"api", "contract", "errors"},
    "cloud": {"api", "errors"},
    "targets": {"operator", "local", "logs", "home", *OPERATOR} - {"progress"},
    "client": {"targets", "local", "logs", "code", "home", *OPERATOR} - {"progress"},
    "web": {"client", "targets", "logs", "plan", "api", "contract", "errors", "locks"},
}
"""What each package may import. cli may import all of them; none imports cli. Examples are programs of their own."""
FREE = {"__init__", "__main__", "cli", "examples"}
PURE_MODULES = {
    "__future__", "collections", "copy", "dataclasses", "datetime", "difflib", "enum", "fnmatch", "functools",
    "hashlib", "itertools", "json", "math", "re", "shlex", "typing", "unicodedata",
    "jsonschema_rs", "pydantic", "re2", "yaml",
}  # fmt: skip


def test_imports_follow_the_arrows():
    assert forbidden_arrows(ROOT, ARROWS) == []


def test_every_arrow_is_used():
    assert unused_arrows(ROOT, ARROWS) == []


def test_every_package_has_its_arrows():
    parts = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - FREE == ARROWS.keys()


def test_the_layer_below_verbs_and_python_api_knows_no_command_line_and_no_terminal():
    found = {name.partition(".")[0] for path in sources(ROOT, "client") for name in imports(ROOT, path)}
    assert found & {"typer", "click", "rich"} == set()


@pytest.mark.parametrize("part", ["api", "plan", "progress"])
def test_the_planner_and_what_it_reads_are_pure(part: str):
    assert impurities(ROOT, part, PURE_MODULES) == []


def test_the_sandbox_runs_on_the_standard_library_alone():
    assert beyond_the_standard_library(ROOT, "local.sandbox") == []


@pytest.mark.parametrize("part", ["launch", "agent"])
def test_what_is_shipped_into_pods_runs_on_the_standard_library_alone(part: str):
    assert beyond_the_standard_library(ROOT, part) == []


def package(tmp_path: Path, **files: str) -> Path:
    """A package `fake` with these files; in their names __ stands for /."""
    root = tmp_path / "fake"
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    "line",
    [
        "from ..kube import client",
        "from .. import kube",
        "from ..kube.client import Client as C",
        "from fake import kube",
        "from fake.kube import client",
        "import fake.kube.client",
        "def later():\n    from ..kube import client",
    ],
)
def test_an_import_against_the_arrows_is_found_however_it_is_written(tmp_path: Path, line: str):
    root = package(tmp_path, local__engine=line, kube__client="")
    (found,) = forbidden_arrows(root, {"local": {"plan"}})
    assert found.startswith("local/engine.py imports fake.kube")
    assert forbidden_arrows(root, {"local": {"kube"}}) == []


def test_a_relative_import_from_a_deeper_package_is_resolved_too(tmp_path: Path):
    root = package(tmp_path, local__sandbox__init="from ...kube import client", local__machine="from . import sandbox")
    assert forbidden_arrows(root, {"local": set()}) == ["local/sandbox/init.py imports fake.kube.client"]


def test_an_arrow_that_no_import_uses_is_found(tmp_path: Path):
    root = package(tmp_path, local__engine="from ..plan import plan")
    assert unused_arrows(root, {"local": {"plan", "kube"}}) == ["local -> kube"]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("import os", "api/types.py imports os"),
        ("from importlib.resources import files", "api/types.py imports importlib.resources.files"),
        ("def later():\n    import requests", "api/types.py imports requests"),
        ("print(1)", "api/types.py:1 calls print"),
        ("text = source.read_text()", "api/types.py:1 calls read_text"),
        ("import datetime\ndatetime.datetime.now()", "api/types.py:2 calls now"),
    ],
)
def test_io_in_a_pure_package_is_found(tmp_path: Path, text: str, finding: str):
    assert impurities(package(tmp_path, api__types=text), "api", {"datetime"}) == [finding]


def test_a_pure_package_may_import_what_is_allowed_and_its_own(tmp_path: Path):
    root = package(tmp_path, api__types="import json\nfrom . import rules\nfrom fake.contract import PORT")
    assert impurities(root, "api", {"json"}) == []


def test_a_third_party_import_in_the_sandbox_is_found_also_behind_a_module_of_ours(tmp_path: Path):
    root = package(
        tmp_path,
        local__sandbox__init="import os\nfrom fake.local import proc\nfrom . import kernel",
        local__sandbox__kernel="import pydantic",
        local__proc="from yaml import safe_load",
    )
    found = beyond_the_standard_library(root, "local.sandbox")
    assert sorted(found) == ["local/proc.py imports yaml.safe_load", "local/sandbox/kernel.py imports pydantic"]


def test_every_file_that_the_map_names_exists():
    page = (ROOT.parent.parent / "ARCHITECTURE.md").read_text()
    named = [path for text in re.findall(r"`([a-z_{][\w/{},.]*/[\w/{},.]*)`", page) for path in alternatives(text)]
    assert len(named) > 100
    assert [path for path in named if not (ROOT / path).exists() and not (ROOT.parent.parent / path).exists()] == []


def alternatives(path: str) -> list[str]:
    """`a/{b,c}.py` names two files."""
    before, brace, rest = path.partition("{")
    names, _, after = rest.partition("}")
    return [before + name + after for name in names.split(",")] if brace else [path]
