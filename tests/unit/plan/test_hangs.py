"""Where workers hang, told in one line from the stacks of their processes."""

from __future__ import annotations

import pytest

from paddlejob.plan.diagnosis.hangs import Process, find_hang, parse_processes

PACKAGES = "/usr/lib/python3.10/site-packages"
MAIN = ("/code/train.py", 90, "<module>")
ALL_REDUCE = [
    (f"{PACKAGES}/paddle/distributed/communication/stream/all_reduce.py", 36, "_all_reduce_in_dygraph"),
    (f"{PACKAGES}/paddle/distributed/communication/stream/all_reduce.py", 124, "all_reduce"),
    (f"{PACKAGES}/paddle/distributed/communication/all_reduce.py", 66, "all_reduce"),
    ("/code/train.py", 81, "average"),
    MAIN,
]
LOADER = [
    (f"{PACKAGES}/paddle/io/dataloader/dataloader_iter.py", 780, "__next__"),
    ("/code/train.py", 70, "main"),
    MAIN,
]
LOADS = [
    (f"{PACKAGES}/paddle/io/dataloader/fetcher.py", 77, "fetch"),
    (f"{PACKAGES}/paddle/io/dataloader/worker.py", 370, "_worker_loop"),
    ("/usr/lib/python3.10/multiprocessing/process.py", 108, "run"),
    (f"{PACKAGES}/paddle/io/dataloader/dataloader_iter.py", 500, "_init_workers"),
    ("/code/train.py", 70, "main"),
    MAIN,
]
LAUNCHER = [
    (f"{PACKAGES}/paddle/distributed/launch/controllers/controller.py", 89, "watch"),
    (f"{PACKAGES}/paddle/distributed/launch/main.py", 283, "launch"),
    ("<frozen runpy>", 88, "_run_code"),
]

Frames = list[tuple[str, int, str]]


def process(frames: Frames, pid: int = 10, parent: int = 1, state: str = "S") -> Process:
    lines = [f'  File "{file}", line {line} in {function}' for file, line, function in frames]
    return Process(pid, parent, state, "\n".join(["Stack (most recent call first):", *lines, ""]), "python train.py")


PLACES = {
    "a collective of the program": (ALL_REDUCE, "in all_reduce (train.py:81)"),
    "a collective of an optimizer": (
        [
            *ALL_REDUCE[:3],
            (f"{PACKAGES}/paddle/distributed/fleet/optimizer.py", 5, "step"),
            ("/code/train.py", 82, "main"),
        ],
        "in all_reduce (train.py:82)",
    ),
    "data": (LOADER, "in DataLoader (train.py:70)"),
    "a lock of the program": ([("/code/cache.py", 12, "load"), MAIN], "in load (cache.py:12)"),
    "a queue": (
        [("/usr/lib/python3.10/queue.py", 171, "get"), ("/code/train.py", 33, "next_batch"), MAIN],
        "in get (train.py:33)",
    ),
    "wrappers of the library": (
        [
            (f"{PACKAGES}/paddle/base/framework.py", 593, "__impl__"),
            (f"{PACKAGES}/paddle/base/dygraph/tensor_patch_methods.py", 342, "backward"),
            (f"{PACKAGES}/decorator.py", 232, "fun"),
            (f"{PACKAGES}/paddle/base/wrapped.py", 26, "__impl__"),
            ("/code/train.py", 44, "main"),
        ],
        "in backward (train.py:44)",
    ),
    "the top level": ([("/code/train.py", 7, "<module>")], "in <module> (train.py:7)"),
    "a package": ([("/code/model/__init__.py", 7, "build"), MAIN], "in build (model/__init__.py:7)"),
    "a program that is installed": (
        [
            *ALL_REDUCE[:3],
            (f"{PACKAGES}/paddleformers/trainer/trainer.py", 812, "train"),
            ("/usr/local/bin/paddleformers-cli", 8, "<module>"),
        ],
        "in all_reduce (trainer.py:812)",
    ),
    "nothing but libraries": ([(f"{PACKAGES}/paddle/x.py", 3, "run")], "in run (x.py:3)"),
    "names that control a terminal": ([("/code/a\x1b[31m.py", 1, "f\x07")], "in f? (a??31m.py:1)"),
}


@pytest.mark.parametrize(("frames", "place"), PLACES.values(), ids=PLACES.keys())
def test_the_place_is_the_innermost_line_of_the_program_and_what_it_called(frames: Frames, place: str):
    assert find_hang({0: [process(frames)]}) == f"worker 0 {place}"


def test_workers_at_the_same_place_are_counted_and_the_others_named():
    dataset = [("/code/data.py", 40, "__getitem__"), *LOADS]
    worker_3 = [process(LOADER, 10), process(LOADS, 12, parent=10), process(dataset, 11, parent=10)]
    workers = {index: [process(ALL_REDUCE)] for index in range(8)} | {3: worker_3}
    assert find_hang(workers) == "7 of 8 workers in all_reduce (train.py:81); worker 3 in DataLoader (data.py:40)"


def test_when_all_hang_at_one_place_that_is_said():
    workers = {index: [process(ALL_REDUCE)] for index in range(4)}
    assert find_hang(workers) == "all 4 workers in all_reduce (train.py:81)"


def test_processes_of_a_launcher_are_named_by_worker_and_number():
    def pod(*stacks: Frames) -> list[Process]:
        return [process(LAUNCHER, 10), *(process(one, 20 + number, parent=10) for number, one in enumerate(stacks))]

    workers = {0: pod(ALL_REDUCE, ALL_REDUCE), 1: pod(ALL_REDUCE, [("/code/train.py", 12, "log")])}
    assert (
        find_hang(workers) == "3 of 4 processes in all_reduce (train.py:81); process 1 of worker 1 in log (train.py:12)"
    )
    assert find_hang({0: pod(ALL_REDUCE)}) == "worker 0 in all_reduce (train.py:81)"


def test_workers_that_cannot_show_a_stack_are_described_by_their_state():
    workers = {
        0: [process(ALL_REDUCE)],
        1: [Process(10, 1, "T", "", "python train.py")],
        2: [Process(10, 1, "S", "", "./train")],
        3: [],
        4: [Process(10, 1, "D", "", "./train")],
    }
    assert find_hang(workers) == (
        "worker 0 in all_reduce (train.py:81); worker 1 stopped by a signal; worker 2 without a Python stack; "
        "worker 3 not answering; 1 more place"
    )
    assert find_hang({0: [], 1: []}) == ""


def test_a_few_workers_at_another_place_are_named_together():
    workers = {index: [process(ALL_REDUCE)] for index in range(8)} | {1: [process(LOADER)], 5: [process(LOADER)]}
    assert (
        find_hang(workers) == "6 of 8 workers in all_reduce (train.py:81); workers 1 and 5 in DataLoader (train.py:70)"
    )


@pytest.mark.parametrize("reported", [None, 5, [1], [{}], [{"pid": "1"}], [{"pid": 7, "parent": None, "stack": 3}]])
def test_whatever_a_pod_reports_is_taken(reported: object):
    assert find_hang({0: parse_processes(reported)}) in ("", "worker 0 without a Python stack")


def test_what_an_agent_reports_is_understood():
    reported = [{"pid": 5, "parent": 1, "command": "python a.py", "state": "S", "stack": process(ALL_REDUCE).stack}]
    assert find_hang({0: parse_processes(reported)}) == "worker 0 in all_reduce (train.py:81)"
