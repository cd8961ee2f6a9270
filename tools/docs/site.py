"""Builds the site of both languages with Zensical, and serves it on this machine."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tools.docs.pages import DOCS, LANGUAGES, ROOT, Section, Titled, english_pages, navigation
from tools.docs.stage import SOURCE, stage

SITE = ROOT / "dist" / "docs"
CONFIG = DOCS / "site.yaml"
NAMES = {"en": "English", "zh": "简体中文"}


def build(target: Path = SITE) -> int:
    """Build into target; a warning of Zensical is an error."""
    with tempfile.TemporaryDirectory() as scratch:
        for language in LANGUAGES:
            folder = Path(scratch) / language
            stage(language, folder / "docs")
            shutil.copytree(DOCS / "overrides", folder / "overrides")
            (folder / "mkdocs.yml").write_text(yaml.safe_dump(_config(language), allow_unicode=True, sort_keys=False))
            zensical = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
            done = subprocess.run(zensical, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                print(f"{NAMES[language]}:\n{done.stdout}{done.stderr}")
                return 1
        _publish(Path(scratch), target)
    print(f"wrote {os.path.relpath(target)}: {len(english_pages())} pages in {len(LANGUAGES)} languages")
    return 0


def serve(port: int) -> int:
    """Build, then serve on the loopback address until interrupted."""
    if build():
        return 1
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"Serving http://127.0.0.1:{server.server_port}/; press Ctrl-C to stop.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def _publish(scratch: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(scratch / "en/site", target)
    shutil.copytree(scratch / "zh/site", target / "zh")


def _config(language: str) -> dict[str, Any]:
    """docs/site.yaml with the settings that differ between languages."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    texts = config.pop("texts")[language]
    config["theme"]["language"] = language
    config["extra"]["alternate"] = [
        {"name": NAMES[one], "lang": one, "link": _up(language) + ("zh/" if one == "zh" else "")} for one in LANGUAGES
    ]
    config |= texts
    config["nav"] = [_entry(section, language) for section in navigation()]
    return config


def _up(language: str) -> str:
    return "../" if language == "zh" else ""


def _entry(section: Section, language: str) -> dict[str, Any]:
    entries: list[Any] = []
    for entry in section.entries:
        if isinstance(entry, Section):
            entries.append(_entry(entry, language))
        elif isinstance(entry, Titled):
            entries.append({entry.title[language]: _inside(entry.page)})
        else:
            entries.append(_inside(entry))
    return {section.title[language]: entries}


def _inside(page: str) -> str:
    return f"{SOURCE}/{page.removeprefix('../')}" if page.startswith("../") else page
