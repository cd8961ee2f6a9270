"""Where the processes of a program are: collected by the agent without stopping them, and told in one line."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from paddlejob.agent.agent import HOOK, python_stack
from paddlejob.plan.diagnosis.hangs import find_hang, parse_processes
from tests.support.agent_stage import pod
from tests.support.waiting import wait_for

COLLECTIVE = """
import socket

def all_reduce(address):
    with socket.create_connection(address) as peer:
        peer.recv(1)
"""
LOADER = """
import multiprocessing

class DataLoader:
    def __init__(self, data):
        self.queue = multiprocessing.Queue()
        multiprocessing.Process(target=self._worker_loop, args=(data,), daemon=True).start()

    def _worker_loop(self, data):
        for item in data:
            self.queue.put(item)

    def __iter__(self):
        return self

    def __next__(self):
        return self.queue.get()
"""
SHOWS = {
    "peer": "in all_reduce\n",
    "data": "in read_images\n",
    "lock": "in take_lock\n",
    "sleep": "in sleep\n",
    "stopped": "",
}
"""What a stack shows once the program is where it hangs."""
PROGRAM = """
import sys, threading, time
from paddle.distributed.communication.all_reduce import all_reduce
from paddle.io.dataloader.dataloader import DataLoader

lock = threading.Lock()

def read_images():
    lock.acquire()  # data
    yield 1

def take_lock():
    lock.acquire()  # lock

def sleep():
    time.sleep(1000)  # sleep

lock.acquire()
print("ready", flush=True)
if sys.argv[1] == "peer":
    all_reduce(("127.0.0.1", int(sys.argv[2])))  # peer
elif sys.argv[1] == "data":
    for item in DataLoader(read_images()): pass
elif sys.argv[1] == "lock":
    take_lock()
else:
    sleep()
"""


def line(mark: str) -> int:
    return next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {mark}"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program, and packages with the names of those of Paddle in which programs hang."""
    packages = tmp_path / "lib" / "site-packages" / "paddle"
    for name, text in {
        "distributed/communication/all_reduce.py": COLLECTIVE,
        "io/dataloader/dataloader.py": LOADER,
    }.items():
        file = packages / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        for folder in (file.parent, file.parent.parent, packages):
            (folder / "__init__.py").touch()
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path / "train.py"


@pytest.mark.parametrize("kind", ["data", "lock", "sleep", "stopped"])
def test_the_worker_that_hangs_is_named_with_its_line_and_the_others_wait_for_it(
    tmp_path: Path, program: Path, kind: str
):
    """Two workers wait in a collective for a peer that never answers."""
    variables = {"PYTHONPATH": str(program.parent / "lib" / "site-packages")}
    found = {}
    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0)) as silent:
        for index in range(3):
            worker = stack.enter_context(pod(tmp_path / f"worker-{index}"))
            operator = worker.connect()
            way = kind if index == 1 else "peer"
            arguments = [str(program), way, str(silent.getsockname()[1])]
            running = worker.run(sys.executable, *arguments, env=variables)
            assert running.stdout and running.stdout.readline() == b"ready\n"
            if way == "stopped":
                os.kill(int(children(running.pid)[0]), signal.SIGSTOP)
            found[index] = operator.stack_with(SHOWS[way])
    hang = find_hang({index: parse_processes(processes) for index, processes in found.items()})
    odd = {
        "data": f"in DataLoader (train.py:{line('data')})",
        "lock": f"in take_lock (train.py:{line('lock')})",
        "sleep": f"in sleep (train.py:{line('sleep')})",
        "stopped": "stopped by a signal",
    }[kind]
    assert hang == f"2 of 3 workers in all_reduce (train.py:{line('peer')}); worker 1 {odd}"


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_stacks_do_not_disturb_the_program_and_are_taken_however_it_hangs(tmp_path: Path):
    """In C code without the GIL, or holding it, in a forked process and in a busy loop."""
    program = tmp_path / "train.py"
    program.write_text(textwrap.dedent(WAYS))
    for way, shows in {"sleeps": "in sleeps", "holds": "in holds", "spins": "in spins", "forks": "in child"}.items():
        running = subprocess.Popen(
            [sys.executable, str(program), way], env={**os.environ, "PYTHONPATH": HOOK}, stdout=subprocess.PIPE
        )
        wait_for(lambda: shows in shown(running.pid))  # noqa: B023
        assert running.poll() is None
        for pid in [*map(int, children(running.pid)), running.pid]:
            os.kill(pid, signal.SIGKILL)
        running.communicate()


WAYS = """
    import ctypes, os, sys, time

    def sleeps():
        time.sleep(1000)

    def holds():
        ctypes.PyDLL(None).read(os.pipe()[0], ctypes.create_string_buffer(1), 1)

    def spins():
        while True:
            pass

    def child():
        time.sleep(1000)

    def forks():
        if os.fork():
            os.wait()
        child()

    globals()[sys.argv[1]]()
"""


def shown(pid: int) -> str:
    return "".join(python_stack(one) for one in [pid, *map(int, children(pid))])


BUSY = """
import faulthandler, os, signal
faulthandler.unregister(50)
signal.signal(50, lambda *_: os._exit(1))
def compute():
    while True:
        sum(range(1000))
print("ready", flush=True)
compute()
"""


def test_a_program_that_computes_is_asked_where_that_is_safe():
    """faulthandler may crash Python 3.11 and 3.12 while they execute: once in 1,000 to 10,000 signals."""
    running = subprocess.Popen(
        [sys.executable, "-c", BUSY], env={**os.environ, "PYTHONPATH": HOOK}, stdout=subprocess.PIPE
    )
    assert running.stdout and running.stdout.readline() == b"ready\n"
    wait_for(lambda: "in compute" in python_stack(running.pid))
    assert running.poll() is None
    running.kill()
    running.communicate()


def test_processes_without_the_hook_get_no_signal(tmp_path: Path):
    """It would end them."""
    for command in (["sleep", "100"], [sys.executable, "-Ic", "import time; time.sleep(100)"]):
        running = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": HOOK})
        assert python_stack(running.pid) == ""
        assert running.poll() is None
        running.kill()
        running.wait()


def test_a_process_that_uses_the_signal_itself_or_has_closed_its_files_is_left_alone(tmp_path: Path):
    for way in ("import signal; signal.signal(50, lambda *_: os._exit(1))", "pass"):
        script = f"import os, time; os.closerange(3, 100); {way}; print('ready', flush=True); time.sleep(100)"
        running = subprocess.Popen(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": HOOK}, stdout=subprocess.PIPE
        )
        assert running.stdout and running.stdout.readline() == b"ready\n"
        assert python_stack(running.pid) == ""
        assert running.poll() is None
        running.kill()
        running.communicate()


USERS = {
    "none": (None, "None\n", ""),
    "one of the user's": ("print('mine', __name__)", "mine sitecustomize\n<module 'sitecustomize' from '{own}'>\n", ""),
    "one that fails": ("1 / 0", "None\n", "ZeroDivisionError"),
}


@pytest.mark.parametrize(("text", "output", "error"), USERS.values(), ids=USERS.keys())
def test_the_users_own_sitecustomize_runs_as_without_the_hook(
    tmp_path: Path, text: str | None, output: str, error: str
):
    if text:
        (tmp_path / "sitecustomize.py").write_text(text)
    show = "import sys; print(sys.modules.get('sitecustomize')); assert not [p for p in sys.path if 'hook' in p]"
    command = [sys.executable, "-c", show]
    variables = {**os.environ, "PYTHONPATH": f"{HOOK}:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    direct = subprocess.run(
        command, env={**variables, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (direct.stdout, direct.stderr)
    assert done.stdout == output.format(own=tmp_path / "sitecustomize.py")
    assert error in done.stderr
