"""Where the workers of a job hang, from the Python stacks of their processes: equal places are named once.

The place is the innermost line of the user's own program, and what it has called there: "all_reduce (train.py:81)".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.*)$')
STATES = {"T": "stopped by a signal", "t": "stopped by a debugger", "D": "in uninterruptible I/O"}
LAUNCHERS = ("/paddle/distributed/launch/", "/paddle/distributed/spawn.py")
"""They wait for the processes that train."""
COLLECTIVES = "/paddle/distributed/communication/"
DATA_LOADERS = ("/paddle/io/dataloader/", "/paddle/base/reader.py", "/paddle/fluid/reader.py")
PADDLE = re.compile(r"/(site|dist)-packages/(paddle|numpy)/")
PACKAGES = re.compile(r"/(site|dist)-packages/")
STANDARD = re.compile(r"^<|/lib/python\d[^/]*/(?!site-packages/|dist-packages/)|/lib/python3/(?!dist-packages/)")
SCRIPTS = re.compile(r"/bin/[^/]+$")
WRAPPERS = {"wrapper", "inner", "fun"}
UNUSUAL = re.compile(r"[^\w.<>/-]")
MOST_PLACES, MOST_NAMED, LONGEST_NAME = 4, 4, 60


@dataclass(frozen=True)
class Process:
    """A process of a worker; `stack` is what faulthandler has written about its main thread, or empty."""

    pid: int
    parent: int
    state: str
    stack: str = ""
    command: str = ""

    @property
    def frames(self) -> list[Frame]:
        found = filter(None, map(FRAME.match, self.stack.splitlines()))
        return [Frame(one["file"], int(one["line"]), one["function"]) for one in found]


@dataclass(frozen=True)
class Frame:
    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        folder, _, name = self.file.rpartition("/")
        shown = f"{folder.rpartition('/')[2]}/{name}" if name == "__init__.py" else name
        return f"{_clean(shown)}:{self.line}"


def parse_processes(reported: object) -> tuple[Process, ...]:
    """What an agent reports about its processes. It comes from a pod, so it may be anything."""
    listed = reported if isinstance(reported, list) else []
    return tuple(_parse(one) for one in listed if isinstance(one, dict) and isinstance(one.get("pid"), int))


def _parse(one: Mapping[str, Any]) -> Process:
    parent = one.get("parent")
    texts = (str(one.get(name) or "") for name in ("state", "stack", "command"))
    return Process(one["pid"], parent if isinstance(parent, int) else 0, *texts)


def find_hang(workers: Mapping[int, Sequence[Process]]) -> str:
    """One line for all workers, by index: "7 of 8 workers in all_reduce (train.py:81); worker 3 in fetch (data.py:40)".

    A worker without processes has not answered. Empty if nothing is known of any.
    """
    places: dict[str, list[str]] = {}
    units = 0
    for index, processes in sorted(workers.items()):
        found = _places(processes)
        units += len(found)
        for number, place in enumerate(found):
            name = f"{index}" if len(found) == 1 else f"{number} of worker {index}"
            places.setdefault(place, []).append(name)
    if not any(workers.values()):
        return ""
    ordered = sorted(places.items(), key=lambda one: -len(one[1]))
    noun = "worker" if units == len(workers) else "process"
    told = [_sentence(place, names, units, noun, first=not position) for position, (place, names) in enumerate(ordered)]
    more = len(told) - MOST_PLACES
    return "; ".join([*told[:MOST_PLACES], *([f"{more} more place{'s' * (more > 1)}"] if more > 0 else [])])


def _sentence(place: str, names: Sequence[str], units: int, noun: str, first: bool) -> str:
    plural = "processes" if noun == "process" else "workers"
    if len(names) == 1:
        return f"{noun} {names[0]} {place}"
    if len(names) == units:
        return f"all {units} {plural} {place}"
    if first or len(names) > MOST_NAMED:
        return f"{len(names)} of {units} {plural} {place}"
    return f"{plural} {', '.join(names[:-1])} and {names[-1]} {place}"


def _places(processes: Sequence[Process]) -> list[str]:
    """Of each process of a worker that trains, in the order in which they were started."""
    if not processes:
        return ["not answering"]
    training = _training(processes)
    if training:
        return [_place(process, processes) for process in training]
    newest = max(processes, key=lambda process: process.pid)
    return [STATES.get(newest.state) or "without a Python stack"]


def _training(processes: Sequence[Process]) -> list[Process]:
    """Neither launchers nor helpers of a process that trains itself, such as those that load its data."""
    candidates = {process.pid: process for process in processes if _trains(process)}
    parents = {process.pid: process.parent for process in processes}

    def is_helper(pid: int) -> bool:
        seen = set()
        while (pid := parents.get(pid, 0)) and pid not in seen:
            seen.add(pid)
            if pid in candidates:
                return True
        return False

    return [candidates[pid] for pid in sorted(candidates) if not is_helper(pid)]


def _trains(process: Process) -> bool:
    frames = process.frames
    launches = any(part in frame.file for frame in frames for part in LAUNCHERS)
    return not launches and bool(frames or (process.state in STATES and "python" in process.command))


def _place(process: Process, processes: Sequence[Process]) -> str:
    frames = process.frames
    if not frames:
        return STATES.get(process.state, "without a Python stack")
    own = _own(frames)
    called = _called(frames[:own])
    if called == "DataLoader":
        loading = (helper.frames for helper in processes if helper.parent == process.pid)
        inside = next((place for place in map(_inside_loader, loading) if place), None)
        return f"in DataLoader ({inside or frames[own].place})"
    return f"in {called or _clean(frames[own].function)} ({frames[own].place})"


def _inside_loader(frames: Sequence[Frame]) -> str | None:
    """The line of the user's data set in a process that loads data."""
    begins = next((at for at, frame in enumerate(frames) if _is_in(frame, DATA_LOADERS)), 0)
    users = (frame.place for frame in frames[:begins] if not _is_library(frame))
    return next(users, None)


def _own(frames: Sequence[Frame]) -> int:
    """The innermost frame of the user's program; of a program that is a package itself, the innermost beyond Paddle."""
    for is_foreign in (_is_library, _is_paddle):
        for at, frame in enumerate(frames):
            if not is_foreign(frame) and not SCRIPTS.search(frame.file):
                return at
    return 0


def _called(inner: Sequence[Frame]) -> str:
    """The known operation that the program waits for, or else what it has called."""
    for frame in inner:
        if COLLECTIVES in frame.file and not frame.function.startswith("_"):
            return _clean(frame.function)
    if any(_is_in(frame, DATA_LOADERS) for frame in inner):
        return "DataLoader"
    named = (frame.function for frame in reversed(inner) if not frame.function.startswith(("_", "<")))
    return _clean(next((name for name in named if name not in WRAPPERS), ""))


def _is_in(frame: Frame, parts: Sequence[str]) -> bool:
    return any(part in frame.file for part in parts)


def _is_library(frame: Frame) -> bool:
    return bool(PACKAGES.search(frame.file) or STANDARD.search(frame.file))


def _is_paddle(frame: Frame) -> bool:
    return bool(PADDLE.search(frame.file) or STANDARD.search(frame.file))


def _clean(name: str) -> str:
    """A name of the program's, which may have characters that control a terminal."""
    return UNUSUAL.sub("?", name)[:LONGEST_NAME]
