"""Running tests in a forked child: once to learn which lines each of them runs, then against each mutant.

A fork of a process that has already imported pytest and the third-party packages starts in milliseconds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tools.mutants import isolation

OURS = ("paddlejob", "tests", "testbed", "tools", "bench")
OPTIONS = (
    *("-q", "-x", "-m", "not full", "--hypothesis-seed=0", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
STARTUP_SECONDS = 60.0
"""On a busy machine collecting the tests took more than 10 s, which says nothing about a mutant."""
ENOUGH_CALLS = 100
"""Tracing is slow, and a test that has called a function this many times hardly reaches new lines in it."""


@dataclass
class Recorded:
    """What one test did: the seconds it took and the lines of the product that it ran."""

    seconds: float = 0.0
    lines: set[tuple[str, int]] = field(default_factory=set)

    @cached_property
    def packages(self) -> set[str]:
        return {file.partition("/")[0] for file, _ in self.lines}


@dataclass(frozen=True)
class Baseline:
    """What the unchanged tests did, and the modules that they imported."""

    exit_code: int
    tests: Mapping[str, Recorded]
    imports: set[tuple[str, int]]
    """The lines that ran before the first test, functions that build a constant among them."""
    modules: Sequence[str]


class Recorder:
    """A pytest plugin that traces the lines of the product for each test, and those that run before the first."""

    def __init__(self, source: Path) -> None:
        self.tests: dict[str, Recorded] = {}
        self._source = f"{source}/"
        self.imports = self._current = Recorded()
        self._calls = Counter[CodeType]()
        sys.settrace(self._call)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._current = self.tests[item.nodeid] = Recorded()
        self._calls.clear()
        started = time.monotonic()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self._current.seconds = time.monotonic() - started

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self._source) or self._calls[frame.f_code] >= ENOUGH_CALLS:
            return None
        self._calls[frame.f_code] += 1
        name, lines = file.removeprefix(self._source), self._current.lines

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add((name, frame.f_lineno))
            return line

        lines.add((name, frame.f_lineno))
        return line


class Selection:
    """A pytest plugin that keeps the chosen tests, quick files and quick tests first, and ends with one that hangs."""

    def __init__(self, chosen: Mapping[str, float]) -> None:
        self._chosen = chosen

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        files: dict[str, float] = {}
        for name, seconds in self._chosen.items():
            files[_file(name)] = files.get(_file(name), 0.0) + seconds
        kept = [item for item in items if item.nodeid in self._chosen]
        kept.sort(key=lambda item: (files[_file(item.nodeid)], item.nodeid.split("::")[0], self._chosen[item.nodeid]))
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        faulthandler.dump_traceback_later(patience(self._chosen[item.nodeid]), exit=True, file=2)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def record(root: Path, paths: Sequence[str]) -> Baseline:
    """Run all tests of these paths in a child and return what they did."""
    reading, writing = os.pipe()

    def work() -> int:
        os.close(reading)
        recorder = Recorder(root / "src" / "paddlejob")
        code = int(pytest.main([*OPTIONS, *paths], plugins=[recorder]))
        modules = [name for name in sys.modules if name.partition(".")[0] not in OURS]
        with os.fdopen(writing, "wb") as pipe:
            # Only built-in types: a test may have imported this module again.
            tests = {name: (one.seconds, one.lines) for name, one in recorder.tests.items()}
            pickle.dump((code, tests, recorder.imports.lines, modules), pipe)
        return code

    pid = _fork(root, work, quiet=False)
    os.close(writing)
    with _ended(pid), os.fdopen(reading, "rb") as pipe:
        code, tests, imports, modules = pickle.load(pipe)
    return Baseline(code, {name: Recorded(*recorded) for name, recorded in tests.items()}, imports, modules)


def notice(root: Path, chosen: Mapping[str, float]) -> bool:
    """Say whether one of these tests fails, or takes much longer than before."""
    files = sorted({_file(name) for name in chosen})
    pid = _fork(root, lambda: int(pytest.main([*OPTIONS, *files], plugins=[Selection(chosen)])), quiet=True)
    with _ended(pid):
        deadline = time.monotonic() + STARTUP_SECONDS + patience(sum(chosen.values()))
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status != 0
            time.sleep(0.01)
    return True


def patience(seconds: float) -> float:
    return 10 + 5 * seconds


def preload(modules: Sequence[str]) -> None:
    """Import third-party modules here, so that each child has them from its start."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _fork(root: Path, work: Callable[[], int], quiet: bool) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _enter(root, quiet)
        code = work()
    except BaseException as error:
        print(f"cannot run the tests: {error!r}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _enter(root: Path, quiet: bool) -> None:
    """Make this process one that was started in the copy, in a process group of its own."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if isolation.is_available():
        isolation.enter(root.parent)
    os.chdir(root)
    source = str(root / "src")
    sys.path[:] = [source, str(root), *(path for path in sys.path[1:] if not path.endswith("/src"))]
    os.environ["PYTHONPATH"] = source
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    if quiet:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    # A failure is enough; making its example small takes longer than finding it.
    phases = (Phase.explicit, Phase.generate)
    checks = list(HealthCheck)
    settings.register_profile("mutants", phases=phases, database=None, deadline=None, suppress_health_check=checks)
    settings.load_profile("mutants")


@contextlib.contextmanager
def _ended(pid: int) -> Iterator[None]:
    """Kill what is left of the child's process group."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _file(test: str) -> str:
    return test.partition("::")[0]
