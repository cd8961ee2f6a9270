"""Prepares the pages of one language: Chinese pages under the English names, and links that stay in the site."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tools.docs.dialect import COMMENT, join_chinese_lines, to_python_markdown
from tools.docs.markdown import FENCE, HEADING, LINK, parse
from tools.docs.pages import (
    DOCS,
    ENGLISH_ONLY,
    GENERATED,
    ROOT,
    english_of,
    english_pages,
    file_of,
    navigation,
    pages_of,
)

SOURCE = "source"
"""The folder of pages for files of the repository that pages link to; so the site needs no other host."""
TRANSLATED = re.compile(r"<!-- translated from ([0-9a-f]{12}) -->\s*$")
STALE = '!!! warning "译文待更新"\n\n    本页的英文版在翻译之后有改动，请以[英文版]({link})为准。\n\n'
WIDE = ("why.md",)
"""Pages with tables that need the width of the table of contents, too."""
LEXERS = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".sh": "bash", ".toml": "toml", ".Dockerfile": "docker"}


def stage(language: str, target: Path) -> None:
    """Write all pages of a language and whatever they link to below target, with the pictures."""
    shutil.copytree(DOCS / "images", target / "images")
    shutil.copytree(DOCS / "assets", target / "assets")
    staging = _Staging(language, target)
    for page in english_pages():
        staging.write_page(page)
    staging.wanted += [ROOT / page.removeprefix("../") for page in pages_of(navigation()) if page.startswith("../")]
    staging.write_sources()


def is_stale(page: str) -> bool:
    """Whether the English page has changed since its Chinese twin was last brought up to date."""
    mark = TRANSLATED.search(file_of(page, "zh").read_text())
    return mark is None or mark[1] != digest(page)


def digest(page: str) -> str:
    """A digest of what readers see of a page, without comments."""
    shown = [line for line in (DOCS / page).read_text().splitlines() if line.strip() and not COMMENT.match(line)]
    return hashlib.sha256("\n".join(shown).encode()).hexdigest()[:12]


@dataclass
class _Staging:
    language: str
    target: Path
    wanted: list[Path] = field(default_factory=list)
    """Files and folders of the repository that a page links to."""

    def write_page(self, page: str) -> None:
        file = file_of(page, self.language)
        anchors = [heading.anchor for heading in parse((DOCS / page).read_text()).headings]
        text = self._rewritten(file.read_text(), file, page, anchors)
        if self.language == "zh" and not page.startswith((*ENGLISH_ONLY, *GENERATED)) and is_stale(page):
            title, _, rest = text.partition("\n")
            up = "../" * (page.count("/") + (0 if page.endswith("index.md") else 1) + 1)
            text = f"{title}\n\n{STALE.format(link=up + _url(page))}{rest}"
        if page in WIDE:
            text = f"---\nhide:\n  - toc\n---\n\n{text}"
        self._write(page, text)

    def write_sources(self) -> None:
        done: set[Path] = set()
        while self.wanted:
            path = self.wanted.pop()
            if path not in done:
                done.add(path)
                self._write(_source_page(path), self._source(path))

    def _source(self, path: Path) -> str:
        name = str(path.relative_to(ROOT))
        front = "---\nsearch:\n  exclude: true\n---\n\n"
        if path.is_dir():
            files = [one for one in sorted(path.iterdir()) if not one.name.startswith((".", "__"))]
            rows = [f"- [{one.name}{'/' * one.is_dir()}]({self._link(one, _source_page(path))})" for one in files]
            return front + f"# {name}\n\n" + "\n".join(rows) + "\n"
        if path.suffix == ".md":
            document = parse(path.read_text())
            anchors = [heading.anchor for heading in document.headings]
            return front + self._rewritten(path.read_text(), path, _source_page(path), anchors)
        return front + f"# {name}\n\n````{_lexer(path)}\n{path.read_text().rstrip()}\n````\n"

    def _rewritten(self, text: str, file: Path, page: str, anchors: list[str]) -> str:
        """The text with explicit anchors, which both languages share, and with links of the site."""
        lines: list[str] = []
        fence, heading = None, iter(anchors)
        for line in text.splitlines():
            opened = FENCE.match(line)
            if opened and fence is None:
                fence = opened[2]
            elif fence is not None and line.strip().startswith(fence):
                fence = None
            elif fence is None and (found := HEADING.match(line)):
                line = f"{found[1]} {found[2]} {{ #{next(heading)} }}"
            if fence is None:
                line = LINK.sub(lambda link: self._relinked(link, file, page), line)
            lines.append(line)
        prepared = to_python_markdown("\n".join(lines))
        return prepared if self.language == "en" else join_chinese_lines(prepared)

    def _relinked(self, link: re.Match[str], file: Path, page: str) -> str:
        bang, text, target = link.groups()
        name, hash_, anchor = target.partition("#")
        if not name or "://" in name or name.startswith("mailto:"):
            return link[0]
        path = (file.parent / name).resolve()
        return f"{bang}[{text}]({self._link(path, page)}{hash_}{anchor})"

    def _link(self, path: Path, page: str) -> str:
        if path.is_relative_to(DOCS) and path.is_file():
            inside = english_of(str(path.relative_to(DOCS)))
        else:
            self.wanted.append(path)
            inside = _source_page(path)
        return os.path.relpath(inside, Path(page).parent)

    def _write(self, page: str, text: str) -> None:
        path = self.target / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _source_page(path: Path) -> str:
    """Where a file or folder of the repository is in the site."""
    name = f"{SOURCE}/{path.relative_to(ROOT)}"
    if path.is_dir():
        return f"{name}/index.md"
    return name if path.suffix == ".md" else f"{name}.md"


def _lexer(path: Path) -> str:
    return LEXERS.get(path.suffix, "docker" if path.name == "Dockerfile" else "text")


def _url(page: str) -> str:
    return page.removesuffix("index.md") if page.endswith("index.md") else page.removesuffix(".md") + "/"
