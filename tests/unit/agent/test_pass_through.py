"""A program under the agent behaves as it does without: streams, directory, environment, signals, exit status."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.agent_stage import Pod
from tests.support.waiting import wait_for

BYTES = bytes(range(256)) * 40
ENDS = {
    "success": "exit 0",
    "a failure": "exit 3",
    "the highest exit status": "exit 255",
    "killed": "kill -KILL $$",
    "aborted": "kill -ABRT $$",
    "terminated": "kill -TERM $$",
    "a broken pipe": "kill -PIPE $$",
    "a signal to the group": "trap '' TERM; kill -TERM 0; exit 4",
}


def as_a_shell_sees(status: int) -> int:
    return 128 - status if status < 0 else status


@pytest.mark.parametrize("script", ENDS.values(), ids=ENDS.keys())
def test_the_exit_status_is_that_of_the_program(alone: Pod, script: str):
    direct = subprocess.run(["bash", "-c", script], start_new_session=True, check=False).returncode
    assert alone.run("bash", "-c", script).wait(20) == as_a_shell_sees(direct)


def test_output_and_input_are_the_same_bytes_and_stay_two_streams(alone: Pod):
    running = alone.run("bash", "-c", "tee /dev/stderr", stdin=subprocess.PIPE)
    assert running.communicate(BYTES, 20) == (BYTES, BYTES)


def test_the_streams_are_inherited_not_copied(alone: Pod, tmp_path: Path):
    with (tmp_path / "log").open("wb") as log:
        running = alone.run("bash", "-c", "readlink /proc/self/fd/1; readlink /proc/self/fd/2", stdout=log, stderr=log)
        assert running.wait(20) == 0
    assert (tmp_path / "log").read_text().split() == [str(tmp_path / "log")] * 2


def test_directory_and_environment_are_the_containers_without_the_variables_of_the_agent(alone: Pod, tmp_path: Path):
    given = {"A": "b=c", "LANG": "", "UNUSUAL": "\udcff", "PYTHONPATH": "/code"}
    running = alone.run("env", "-0", cwd=tmp_path, env=given)
    shown = dict(entry.split(b"=", 1) for entry in running.communicate(timeout=20)[0].split(b"\0") if entry)
    expected = {os.fsencode(name): os.fsencode(value) for name, value in {**os.environ, **given}.items()}
    expected[b"PYTHONPATH"] = os.fsencode(alone.directory / "hook") + b":/code"
    assert shown == expected
    assert alone.run("pwd", cwd=tmp_path).communicate(timeout=20)[0].decode().strip() == str(tmp_path)


def test_signals_that_python_ignores_have_their_defaults_and_ignored_ones_stay_ignored(alone: Pod):
    command = ["bash", "-c", "grep SigIgn /proc/self/status"]
    assert ignored(*alone.argv(*command)) == ignored(*command) == {signal.SIGHUP}


def ignored(*command: str) -> set[int]:
    """What this command shows as ignored if SIGHUP is; without 32 and 33, which the C library keeps for itself."""
    below = ["bash", "-c", 'trap "" HUP; exec "$@"', "-", *command]
    mask = int(subprocess.run(below, capture_output=True, check=True).stdout.split()[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1} - {32, 33}


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "CONT", "WINCH", "ABRT", "RTMIN"])
def test_a_signal_to_the_container_reaches_the_program(alone: Pod, name: str):
    running = alone.run("bash", "-c", f"trap 'echo {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done")
    assert running.stdout and running.stdout.readline() == b"ready\n"
    running.send_signal(signal.SIGRTMIN if name == "RTMIN" else signal.Signals[f"SIG{name}"])
    assert running.stdout.readline().decode().strip() == name
    assert running.wait(20) == 7


def test_a_signal_without_a_handler_ends_the_program_and_the_agent_with_it(led: Pod):
    running = led.run("sleep", "100")
    assert led.operator
    led.operator.heard(state="running")
    running.terminate()
    assert running.wait(5) == 128 + signal.SIGTERM


def test_a_program_that_saves_on_sigterm_has_the_time_for_it_and_its_status_counts(led: Pod):
    save = "import signal, sys, time\nsignal.signal(15, lambda *_: (time.sleep(0.3), print('saved'), sys.exit(0)))\n"
    running = led.run(sys.executable, "-uc", f"{save}print('ready')\nwhile True: time.sleep(1)")
    assert running.stdout and running.stdout.readline() == b"ready\n"
    running.terminate()
    assert running.communicate(timeout=20)[0] == b"saved\n"
    assert running.returncode == 0


def test_a_terminal_belongs_to_the_program(alone: Pod):
    """Ctrl-C in `kubectl attach` reaches it, and it may read."""
    master, slave = pty.openpty()
    script = "import os, sys; print(os.getpgrp() == os.tcgetpgrp(0), sys.stdin.readline().strip())"
    options = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    takes = ["setsid", "--ctty", "--wait", *alone.argv(sys.executable, "-c", script)]
    running = subprocess.Popen(takes, **options)  # type: ignore[call-overload]
    os.write(master, b"typed\n")
    shown = b""
    while b"True typed" not in shown:
        shown += os.read(master, 1000)
    assert running.wait(20) == 0
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize(("command", "status"), [("/no/such/program", 127), ("/etc/passwd", 126)])
def test_a_program_that_cannot_be_started_is_named(alone: Pod, command: str, status: int):
    running = alone.run(command)
    assert f"paddlejob: cannot start {command}: [Errno" in running.communicate(timeout=20)[1].decode()
    assert running.returncode == status


def test_orphans_are_reaped_while_the_program_runs(alone: Pod):
    running = alone.run("bash", "-c", "(sleep 0.1 &) ; echo ready; sleep 100")
    assert running.stdout and running.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    wait_for(lambda: not zombies_of(running.pid))


def zombies_of(pid: int) -> list[str]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    stats = [Path(f"/proc/{child}/stat").read_text() for child in children if Path(f"/proc/{child}").exists()]
    return [text for text in stats if text.rpartition(")")[2].split()[0] == "Z"]


ISOLATED = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
CAN_ISOLATE = subprocess.run([*ISOLATED, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not CAN_ISOLATE, reason="needs the right to make PID namespaces")
@pytest.mark.parametrize("script", ENDS.values(), ids=ENDS.keys())
def test_as_process_1_of_a_container_it_ends_with_the_same_status(alone: Pod, script: str):
    direct = subprocess.run(["bash", "-c", script], start_new_session=True, check=False).returncode
    as_first = [*ISOLATED, *alone.argv("bash", "-c", f"test $PPID = 1 || exit 99; {script}")]
    assert subprocess.run(as_first, timeout=20, check=False).returncode == as_a_shell_sees(direct)


@pytest.mark.skipif(not CAN_ISOLATE, reason="needs the right to make PID namespaces")
def test_as_process_1_it_passes_sigterm_on(alone: Pod):
    as_first = [*ISOLATED, *alone.argv("bash", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")]
    running = subprocess.Popen(as_first, stdout=subprocess.PIPE)
    assert running.stdout and running.stdout.readline() == b"ready\n"
    first = int(Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()[0])
    os.kill(first, signal.SIGTERM)
    assert running.wait(20) == 7
    running.stdout.close()
