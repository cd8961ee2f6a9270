"""The pages of the documentation, their Chinese twins, and the order in which readers see them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAVIGATION = DOCS / "navigation.yaml"
LANGUAGES = ("en", "zh")
ENGLISH_ONLY = ("decisions/",)
"""For people who change paddlejob; the Chinese site shows the same pages."""
GENERATED = ("reference/",)
"""Both languages come from one command, so neither can be behind the other."""
OUTSIDE = {"README.md": "README.zh-CN.md"}
"""Twins outside docs/."""


@dataclass(frozen=True)
class Titled:
    """A page under another title than its first heading."""

    title: dict[str, str]
    page: str


@dataclass(frozen=True)
class Section:
    title: dict[str, str]
    entries: tuple[str | Titled | Section, ...]
    """Pages, as paths relative to docs/, and sections below this one."""


def english_pages() -> list[str]:
    """Every English page, as a path relative to docs/."""
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if not path.name.endswith(".zh.md"))


def twin_of(page: str) -> str:
    """The path of the Chinese page; of a page that is English only, the page itself."""
    return page if page.startswith(ENGLISH_ONLY) else page.removesuffix(".md") + ".zh.md"


def english_of(page: str) -> str:
    return page.removesuffix(".zh.md") + ".md" if page.endswith(".zh.md") else page


def file_of(page: str, language: str) -> Path:
    return DOCS / (twin_of(page) if language == "zh" else page)


def navigation() -> list[Section]:
    return [_section(entry) for entry in yaml.safe_load(NAVIGATION.read_text())]


def pages_of(sections: list[Section]) -> list[str]:
    found: list[str] = []
    for section in sections:
        for entry in section.entries:
            if isinstance(entry, Section):
                found += pages_of([entry])
            else:
                found.append(entry.page if isinstance(entry, Titled) else entry)
    return found


def _section(entry: dict[str, Any]) -> Section:
    entries: list[str | Titled | Section] = []
    for one in entry["pages"]:
        if isinstance(one, dict):
            entries.append(_section(one) if "pages" in one else Titled(one["title"], one["page"]))
        elif one.endswith("/"):
            entries += [page for page in english_pages() if page.startswith(one)]
        else:
            entries.append(one)
    return Section(entry["title"], tuple(entries))
