"""Finding a Python by what users call it: a program, a directory, or the name of a conda or uv environment."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from paddlejob.errors import BadArgument
from paddlejob.home import home_directory

CONDA_ROOTS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")
"""Where conda and its relatives install themselves in a home directory."""


def find_interpreter(given: str) -> str:
    """The path of the Python that a user names; an empty name stays empty."""
    if not given:
        return ""
    program, path = shutil.which(given), Path(given).expanduser()
    if program and (os.sep in given or re.match(r"python|pypy", Path(program).name)):
        return program
    if path.is_dir():
        return _in_directory(given, path)
    environments = dict(_conda_environments())
    if given in environments:
        return environments[given]
    if found := program or _of_uv(given):
        return found
    known = f"conda environments here: {', '.join(sorted(environments))}" if environments else "no conda is found here"
    raise BadArgument("python", f"no such program, directory or environment; {known}", given)


def _in_directory(given: str, path: Path) -> str:
    """The Python of an environment, or of a project with a .venv as uv creates it."""
    for python in (path / "bin" / "python", path / ".venv" / "bin" / "python"):
        if python.exists():
            return str(python.absolute())
    raise BadArgument("python", "has neither bin/python nor .venv/bin/python; name an environment", given)


def _conda_environments() -> Iterator[tuple[str, str]]:
    """Names of environments and their Pythons; the first of a name counts, so they come in reverse order."""
    found = [(one.name, one) for one in _environment_directories()]
    found += [("base", root) for root in _conda_roots()]
    for name, directory in reversed(found):
        if (python := directory / "bin" / "python").exists():
            yield name, str(python)


def _environment_directories() -> Iterator[Path]:
    home = home_directory()
    for variable in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for one in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield from _children(Path(one))
    for root in _conda_roots():
        yield from _children(root / "envs")
    yield from _children(home / ".conda" / "envs")
    try:
        listed = (home / ".conda" / "environments.txt").read_text().splitlines()
    except OSError:
        return
    yield from (Path(line) for line in listed if line.strip())


def _conda_roots() -> Iterator[Path]:
    if executable := os.environ.get("CONDA_EXE"):
        yield Path(executable).parent.parent
    if root := os.environ.get("MAMBA_ROOT_PREFIX"):
        yield Path(root)
    yield from (home_directory() / name for name in CONDA_ROOTS)
    yield Path("/opt/conda")


def _children(directory: Path) -> list[Path]:
    try:
        return sorted(one for one in directory.iterdir() if one.is_dir())
    except OSError:
        return []


def _of_uv(version: str) -> str:
    """A Python that uv manages, by its version, such as 3.11."""
    if not re.fullmatch(r"3\.\d+(\.\d+)?", version):
        return ""
    data = Path(os.environ.get("XDG_DATA_HOME") or home_directory() / ".local" / "share")
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    found = [one / "bin" / "python3" for one in _children(managed) if one.name.startswith(f"cpython-{version}")]
    return next((str(python) for python in reversed(found) if python.exists()), "") or (
        shutil.which(f"python{version}") or ""
    )
