"""What the agent tells the operator, and how it obeys: one attempt after the other in the same container."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_stage import Operator, Pod, pod
from tests.support.waiting import wait_for

SECOND: dict[str, Any] = {"order": "start", "attempt": 2, "environment": {}}
STOP: dict[str, Any] = {"order": "stop", "attempt": 2, "graceSeconds": 5}


@pytest.fixture
def operator(led: Pod) -> Operator:
    assert led.operator
    return led.operator


def alive(name: str) -> list[str]:
    """Processes with this argument."""
    found = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [path.name for path in found if name.encode() in arguments(path)]


def arguments(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def test_a_program_that_fails_is_reported_and_begins_again_in_the_same_container(led: Pod, operator: Operator):
    running = led.run("bash", "-c", 'echo -n "in $PADDLE_TRAINER_ID"; test $RESUME || exit 7', env={"OLD": "1"})
    report = operator.heard(state="exited")
    assert report == {"version": 1, "attempt": 1, "state": "exited", "exitStatus": 7, "output": ""}
    operator.say(order="start", attempt=2, environment={"PADDLE_TRAINER_ID": "4", "RESUME": "1", "OLD": None})
    output = running.communicate(timeout=20)[0].decode()
    assert output == "in \npaddlejob: attempt 2 begins in place\nin 4"
    assert running.returncode == 0


def test_a_variable_is_removed_or_kept_for_all_later_attempts(led: Pod, operator: Operator):
    running = led.run("bash", "-c", "env | grep -E '^(A|B|C)=' | sort; exit 1", env={"A": "1", "B": "1"})
    operator.heard(state="exited", attempt=1)
    operator.say(order="start", attempt=2, environment={"A": None, "C": "2"})
    operator.heard(state="exited", attempt=2)
    operator.say(order="start", attempt=5, environment={"B": "5"})
    operator.heard(state="exited", attempt=5)
    operator.say(order="release")
    assert running.wait(20) == 1
    shown = running.communicate()[0].decode().split("\n")
    assert [line for line in shown if line and "paddlejob" not in line] == ["A=1", "B=1", "B=1", "C=2", "B=5", "C=2"]


def test_a_program_that_runs_stops_and_begins_again_when_its_peers_have_stopped_too(led: Pod, operator: Operator):
    running = led.run("bash", "-c", "echo begun; test $AGAIN || exec sleep 100")
    operator.heard(state="running", attempt=1)
    operator.say(**STOP)
    assert operator.heard(state="stopped", attempt=1)["exitStatus"] == 143
    operator.say(**SECOND | {"environment": {"AGAIN": "1"}})
    assert running.communicate(timeout=20)[0] == b"begun\n\npaddlejob: attempt 2 begins in place\nbegun\n"


def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(led: Pod, operator: Operator):
    led.run("bash", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    operator.heard(state="running")
    operator.say(**STOP | {"graceSeconds": 0.5})
    assert operator.heard(state="stopped")["exitStatus"] == 137


def test_a_program_that_ends_with_0_because_it_was_stopped_has_not_succeeded(led: Pod, operator: Operator):
    running = led.run("bash", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done")
    operator.heard(state="running")
    operator.say(**STOP)
    assert operator.heard(state="stopped")["exitStatus"] == 143
    operator.say(order="release")
    assert running.wait(20) == 143


ESCAPES = {
    "a child": "sleep {mark} &",
    "another session": "setsid sleep {mark} &",
    "an orphan": "(setsid sleep {mark} &)",
    "a daemon": "(setsid bash -c '(sleep {mark} &)' &)",
    "deaf": "(trap '' TERM; setsid bash -c 'trap \"\" TERM; sleep {mark}; sleep {mark}' &)",
}


@pytest.mark.parametrize("ends", ["exit 3", "sleep 1000"])
@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
def test_nothing_of_an_attempt_is_left_when_it_has_ended(led: Pod, operator: Operator, escape: str, ends: str):
    mark = f"1{id(led) % 100000}.5"
    led.run("bash", "-c", f"{escape.format(mark=mark)}\nsleep 0.3; {ends}")
    wait_for(lambda: alive(mark))
    operator.say(**STOP | {"graceSeconds": 0.3})
    wait_for(lambda: operator.reports and operator.reports[-1]["state"] != "running")
    assert not alive(mark)


@pytest.mark.parametrize(
    ("state", "late"),
    [
        ("running", STOP | {"attempt": 1}),
        ("running", SECOND),
        ("running", {"order": "release"}),
        ("exited", SECOND | {"attempt": 1}),
        ("exited", STOP),
        ("exited", {"order": "dance"}),
        ("exited", {}),
        ("exited", SECOND | {"environment": {"A": 5}}),
        ("exited", SECOND | {"attempt": "two"}),
    ],
)
def test_an_order_that_does_not_fit_changes_nothing(led: Pod, operator: Operator, state: str, late: dict[str, Any]):
    operator.insists = late
    running = led.run("bash", "-c", "sleep 100" if state == "running" else "exit 3")
    wait_for(lambda: len(operator.reports) > 2)
    assert {report["state"] for report in operator.reports[1:]} == {state}
    assert {report["attempt"] for report in operator.reports} == {1}
    assert running.poll() is None


def test_the_same_order_twice_starts_once(led: Pod, operator: Operator):
    running = led.run("bash", "-c", "echo begun; test $AGAIN && sleep 100; exit 3")
    operator.heard(state="exited")
    operator.insists = SECOND | {"environment": {"AGAIN": "1"}}
    wait_for(lambda: len([one for one in operator.reports if one["attempt"] == 2]) > 1)
    running.terminate()
    assert running.communicate(timeout=20)[0].count(b"begun") == 2


def test_a_container_that_ends_while_it_waits_has_the_status_of_the_program(led: Pod, operator: Operator):
    running = led.run("bash", "-c", "exit 9")
    operator.heard(state="exited")
    running.terminate()
    assert running.wait(5) == 9


def test_success_needs_no_operator(alone: Pod):
    assert alone.run("true", env={"PADDLEJOB_AGENT_URL": "https://127.0.0.1:1"}).wait(5) == 0


def test_without_an_answer_a_failure_ends_the_container(alone: Pod):
    assert alone.run("bash", "-c", "exit 5", env={"PADDLEJOB_AGENT_URL": "https://127.0.0.1:1"}).wait(20) == 5


def test_an_operator_that_is_gone_ends_the_wait_and_one_that_answers_prolongs_it(led: Pod, operator: Operator):
    running = led.run("bash", "-c", "exit 5")
    operator.heard(state="exited")
    wait_for(lambda: len(operator.reports) > 3)
    assert running.poll() is None
    operator.close()
    assert running.wait(20) == 5


def test_a_program_that_ended_asks_often_because_others_than_the_leader_deny_it(led: Pod, operator: Operator):
    """Of several operators behind one address only the leader answers; each request may meet any of them."""
    program = led.directory / "agent.py"
    delays = "SHORTEST_DELAY, LONGEST_DELAY, LOOK_SECONDS = "
    assert f"{delays}0.5," in program.read_text()
    program.write_text(program.read_text().replace(f"{delays}0.5,", f"{delays}0.05,"))
    operator.status = 409
    running = led.run("bash", "-c", "exit 5")
    wait_for(lambda: operator.rejected >= 10 or running.poll() is not None)
    operator.status = 200
    operator.heard(state="exited")
    operator.say(order="release")
    assert running.wait(20) == 5


def test_while_the_program_runs_a_dead_channel_is_silent(alone: Pod):
    running = alone.run("sleep", "2", env={"PADDLEJOB_AGENT_URL": "https://127.0.0.1:1"})
    assert running.communicate(timeout=20) == (b"", b"")
    assert running.returncode == 0


def test_a_token_that_was_renewed_is_used(led: Pod, operator: Operator):
    led.run("bash", "-c", "exit 3")
    operator.heard(state="exited")
    (led.directory / "token").write_text("secret-2\n")
    operator.say(**SECOND)
    operator.heard(attempt=2, state="exited")
    assert operator.tokens[0] == "Bearer secret-1"
    assert operator.tokens[-1] == "Bearer secret-2"


def test_an_operator_with_a_certificate_of_another_authority_learns_nothing(
    led: Pod, operator: Operator, tmp_path: Path
):
    with pod(tmp_path / "other") as other:
        other.connect()
        (led.directory / "ca.crt").write_bytes((other.directory / "ca.crt").read_bytes())
    assert led.run("bash", "-c", "exit 3").wait(20) == 3
    assert operator.reports == []


def test_a_request_that_is_rejected_is_repeated(led: Pod, operator: Operator):
    operator.status = 409
    running = led.run(sys.executable, "-c", "import time; time.sleep(1); raise SystemExit(3)")
    wait_for(lambda: operator.rejected)
    operator.status = 200
    operator.heard(state="exited")
    operator.say(order="release")
    assert running.wait(20) == 3
