"""Which files of a directory are shipped: what Git would not ignore, without caches and what may be secret.

.pdjignore has the last word, then the list below, then Git's files: every .gitignore from the root of the repository
down, and .git/info/exclude. As in Git, nothing below a directory that is left out comes back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paddlejob.code.gitignore import Pattern, decision, parse_patterns
from paddlejob.errors import NotPossible

CACHES = (
    ".git", ".hg/", ".svn/", "__pycache__/", "*.py[co]", ".venv/", "venv/", "node_modules/", ".ipynb_checkpoints/",
    ".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".DS_Store",
)  # fmt: skip
SECRETS = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".git-credentials", ".pypirc", ".npmrc",
    ".pgpass", ".my.cnf", ".htpasswd", ".s3cfg", ".boto", ".vault-token", ".dockercfg", ".docker/", ".aws/", ".azure/",
    ".gcloud/", ".config/gcloud/", ".kube/", "kubeconfig", "kubeconfig.y*ml", "*.kubeconfig", ".ssh/", ".gnupg/",
    ".kaggle/", "kaggle.json", ".huggingface/", ".cache/huggingface/", ".hf_token", "hf_token", "hf_token.txt",
    "credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json", "*.tfstate",
    "*.tfvars", "secrets.toml", "rclone.conf", ".databrickscfg", ".ossutilconfig", ".modelscope/",
)  # fmt: skip
"""Names of files that hold keys and tokens, in lower case; `!NAME` in .pdjignore ships one nevertheless."""
_CACHES, _SECRETS = (parse_patterns("\n".join(names).encode()) for names in (CACHES, SECRETS))
_Rules = tuple[tuple[tuple[Pattern, ...], bytes], ...]
"""Patterns, innermost first, each with the path from the directory of their file to the present one."""


@dataclass
class Listing:
    """Names relative to the directory; a directory that was left out ends in a slash and stands for all in it."""

    files: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    secret: list[str] = field(default_factory=list)
    """What was left out because it may be secret."""
    on_purpose: set[str] = field(default_factory=set)
    """Files that .pdjignore says to ship."""


def list_files(root: Path) -> Listing:
    found = Listing()
    _walk(root, "", (), _rules_above(root.resolve()), found)
    for names in (found.files, found.ignored, found.secret):
        names.sort()
    return found


def _walk(folder: Path, prefix: str, own: _Rules, git: _Rules, found: Listing) -> None:
    own, git = _with(folder / ".pdjignore", own), _with(folder / ".gitignore", git)
    for entry in _entries(folder):
        if any("\ud800" <= character <= "\udfff" for character in entry.name):
            raise NotPossible(f"{folder}: the name of file {entry.name!r} is not UTF-8; rename or remove it")
        is_folder, name = entry.is_dir(follow_symlinks=False), entry.name.encode()
        path = prefix + entry.name
        decided = _decide(own, name, is_folder)
        secret = decided is None and decision(_SECRETS, path.lower().encode(), is_folder)
        cache = decided is None and decision(_CACHES, path.encode(), is_folder)
        if decided or secret or cache or (decided is None and _decide(git, name, is_folder)):
            (found.secret if secret else found.ignored).append(path + "/" * is_folder)
        elif is_folder:
            below = name + b"/"
            _walk(folder / entry.name, f"{path}/", _below(own, below), _below(git, below), found)
        elif entry.is_file() or entry.is_symlink():
            found.files.append(path)
            if decided is False:
                found.on_purpose.add(path)


def _decide(rules: _Rules, name: bytes, is_folder: bool) -> bool | None:
    """Whether they leave out a file of the present directory; None if no pattern matches."""
    found = (decision(patterns, path + name, is_folder) for patterns, path in rules)
    return next((one for one in found if one is not None), None)


def _below(rules: _Rules, name: bytes) -> _Rules:
    return tuple((patterns, path + name) for patterns, path in rules)


def _with(file: Path, rules: _Rules) -> _Rules:
    patterns = _read(file)
    return ((patterns, b""), *rules) if patterns else rules


def _rules_above(root: Path) -> _Rules:
    """Those of the repository that the directory is in. What ignores the directory itself does not count here."""
    above = [root, *root.parents]
    top = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), None)
    if top is None:
        return ()
    rules = _with(_git_directory(above[top] / ".git") / "info" / "exclude", ())
    for number in range(top, 0, -1):
        rules = _below(_with(above[number] / ".gitignore", rules), os.fsencode(above[number - 1].name) + b"/")
    return rules


def _git_directory(path: Path) -> Path:
    """The directory that holds info/exclude; in a worktree or submodule, .git is a file that names another."""
    if not path.is_file():
        return path
    named = path.parent / path.read_text().removeprefix("gitdir:").strip()
    common = named / "commondir"
    return named / common.read_text().strip() if common.exists() else named


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise NotPossible(f"{folder} cannot be read: {error.strerror}; add it to .pdjignore") from None


def _read(path: Path) -> tuple[Pattern, ...]:
    """Git does not follow a .gitignore that is a link."""
    try:
        return () if path.name == ".gitignore" and path.is_symlink() else parse_patterns(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise NotPossible(f"{path} cannot be read: {error.strerror}") from None
