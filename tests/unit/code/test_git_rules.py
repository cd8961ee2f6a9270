"""Which files Git would ignore: compared with Git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from paddlejob.code.gitignore import parse_patterns
from paddlejob.code.ignore import list_files

NAMES = st.sampled_from(["a", "b", "ab", "b.py", "a b", "é", "-", "]", "[x", "*", "#a", "!a", "\\", "c "])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    ["a", "b", "*", "**", "?", "/", "**/", "/**", "!", "\\", "#", " ", "é", "-", "]", "[", "*.py", "[a-b]", "[!a]",
     "[^]x]", "[[:alpha:]]", "[[:nope:]]", "[a-", "[z-a]", "[\\]]", "[]-a]", "[:", "a/b"]
)  # fmt: skip
LINES = st.lists(PIECES, min_size=1, max_size=4).map("".join)
FILES = st.tuples(
    st.sampled_from(["", "\ufeff"]), st.lists(LINES, max_size=4), st.sampled_from(["\n", "\r\n"])
).map(lambda parts: parts[0] + parts[2].join(parts[1]))  # fmt: skip


def run_git(folder: Path, *arguments: str) -> list[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *arguments]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    return sorted(os.fsdecode(one) for one in output.split(b"\0") if one)


def write(path: Path, text: str) -> None:
    """Unless a file has the name of a directory."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        pass


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=12),
    ignoring=st.dictionaries(st.sampled_from(["", "a/", "a/b/", "code/", "code/a/", "code/a/b/"]), FILES, max_size=3),
    exclude=FILES,
)
@example(paths=["a/b.py", "a/ab", "b.py"], ignoring={"code/": "*\n!*/\n!*.py"}, exclude="")
@example(paths=["a", "b"], ignoring={"code/": "!\n\ufeffa"}, exclude="")
@example(paths=["a", "b"], ignoring={"": "\ufeffa\n"}, exclude="b")
@example(paths=["ab/b/a", "ab/a"], ignoring={"": "code/a**/a"}, exclude="")
def test_files_are_ignored_as_git_ignores_them(
    paths: list[str], ignoring: dict[str, str], exclude: str, tmp_path_factory: pytest.TempPathFactory
):
    """In a directory of a repository: with every .gitignore above and below, and .git/info/exclude."""
    root = tmp_path_factory.mktemp("repository")
    run_git(root, "init", "-q")
    write(root / ".git" / "info" / "exclude", exclude)
    write(root / "code" / "z", "")
    for path in paths:
        write(root / "code" / path, "x")
    for folder, text in ignoring.items():
        write(root / folder / ".gitignore", text)
    ignored = subprocess.run(["git", "-C", str(root), "check-ignore", "-q", "code"], check=False).returncode == 0
    assume(not ignored)  # The user names the directory itself on purpose.
    expected = run_git(root / "code", "ls-files", "--others", "--exclude-standard", "-z")
    assert list_files(root / "code").files == expected


CLASSES = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit"
SETS = [f"[[:{name}:]]" for name in CLASSES.split()]
SETS += [
    "[]a]",
    "[!]a]",
    "[a-]",
    "[-a]",
    "[]-a]",
    "[a-c-e]",
    "[\\]]",
    "[a\\-c]",
    "[+--]",
    "[^[:digit:]a]",
    "[!/]",
    "[a",
    "[]",
]


def test_sets_of_characters_are_those_of_git(tmp_path: Path):
    run_git(tmp_path, "init", "-q")
    for number, pattern in enumerate(SETS):
        write(tmp_path / str(number) / ".gitignore", f"x{pattern}\n")
        for character in map(chr, range(1, 128)):
            if character != "/":
                write(tmp_path / str(number) / f"x{character}", "")
    expected = run_git(tmp_path, "ls-files", "--others", "--exclude-standard", "-z")
    assert list_files(tmp_path).files == expected


def test_the_excludes_of_a_repository_hold_in_its_worktrees(tmp_path: Path):
    run_git(tmp_path, "init", "-q", "main")
    main = tmp_path / "main"
    run_git(main, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x")
    run_git(main, "worktree", "add", "-q", "../other")
    write(main / ".git" / "info" / "exclude", "secret.txt\n")
    for name in ("secret.txt", "train.py"):
        write(tmp_path / "other" / name, "")
    assert list_files(tmp_path / "other").files == ["train.py"]


def test_a_gitignore_that_is_a_link_is_not_followed(tmp_path: Path):
    write(tmp_path / "elsewhere", "*\n")
    write(tmp_path / "code" / "train.py", "")
    (tmp_path / "code" / ".gitignore").symlink_to("../elsewhere")
    assert list_files(tmp_path / "code").files == [".gitignore", "train.py"]


@pytest.mark.parametrize("line", ["", "#a", "!", "/", "!/", "[a", "a\\", "[[:x:]]"])
def test_a_line_that_names_nothing_matches_nothing(line: str):
    assert not [one for one in parse_patterns(line.encode()) if one.matches(b"a", is_folder=True)]
