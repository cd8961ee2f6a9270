"""Which files of a directory are shipped: all but those that .gitignore, .pdjignore and the defaults leave out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

from paddlejob.errors import NotPossible

IGNORE_FILES = (".gitignore", ".pdjignore")
"""In this order: of two patterns that match, the last one decides, as in Git."""
DEFAULTS = (
    ".git/", ".hg/", ".svn/", "__pycache__/", "*.py[co]", ".venv/", "venv/", "node_modules/", ".ipynb_checkpoints/",
    ".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".DS_Store", ".env", ".env.*", "*.pem", "*.key", "id_rsa*",
    ".netrc", ".aws/", ".kube/", ".ssh/",
)  # fmt: skip
"""What no program needs, and what may be secret. `!.env` in .pdjignore ships it anyway."""


@dataclass(frozen=True)
class Listing:
    files: tuple[str, ...]
    """Relative to the directory, sorted."""
    ignored: tuple[str, ...]
    """What was left out; a directory ends in a slash and stands for all of its files."""


@dataclass(frozen=True)
class _Patterns:
    """The patterns of one directory; they match paths relative to it."""

    base: PurePosixPath
    spec: GitIgnoreSpec


def list_files(root: Path) -> Listing:
    files: list[str] = []
    ignored: list[str] = []
    top = _Patterns(PurePosixPath(), GitIgnoreSpec.from_lines([*DEFAULTS, *_lines(root)]))
    _walk(root, PurePosixPath(), (top,), files, ignored)
    return Listing(tuple(sorted(files)), tuple(sorted(ignored)))


def _walk(
    root: Path, folder: PurePosixPath, patterns: tuple[_Patterns, ...], files: list[str], ignored: list[str]
) -> None:
    for entry in _entries(root / folder):
        path = folder / entry.name
        if not entry.name.isprintable() and _is_not_text(entry.name):
            raise NotPossible(f"{root / folder}: the name of file {entry.name!r} is not UTF-8; rename or remove it")
        is_folder = entry.is_dir(follow_symlinks=False)
        name = f"{path}/" if is_folder else str(path)
        if _is_ignored(name, patterns):
            ignored.append(name)
        elif is_folder:
            own = _lines(root / path)
            below = (*patterns, _Patterns(path, GitIgnoreSpec.from_lines(own))) if own else patterns
            _walk(root, path, below, files, ignored)
        elif entry.is_file() or entry.is_symlink():
            files.append(name)


def _is_not_text(name: str) -> bool:
    """Whether it holds bytes that are not UTF-8, which Python shows as surrogates."""
    return any("\ud800" <= character <= "\udfff" for character in name)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise NotPossible(f"{folder}: cannot be read: {error.strerror}; add it to .pdjignore") from None


def _is_ignored(name: str, patterns: Sequence[_Patterns]) -> bool:
    """The patterns of the innermost directory that match decide."""
    for one in reversed(patterns):
        relative = name[len(str(one.base)) + 1 :] if one.base.parts else name
        decided = one.spec.check_file(relative).include
        if decided is not None:
            return decided
    return False


def _lines(folder: Path) -> list[str]:
    lines: list[str] = []
    for name in IGNORE_FILES:
        try:
            lines += (folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise NotPossible(f"{folder / name}: cannot be read: {error.strerror}") from None
    return lines
