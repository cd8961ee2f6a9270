"""Errors, the help, what `pdj doctor` finds, and how the progress of data is printed."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cli import main as main_module
from paddlejob.cli.doctor import machine
from paddlejob.cli.doctor.check import Check, Verdict
from paddlejob.errors import BadInput, JobFailed
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.resources import Machine
from tests.support.called_pdj import Called, pdj
from tests.support.pdj import START

FULL = (
    "free some space (`pdj clean` removes the logs of previous runs, `pdj delete JOB` those of a job), "
    "or set PADDLEJOB_STATE to another disk"
)


@pytest.mark.parametrize("arguments", [("list",), ("run", "--", "true")])
def test_a_user_without_a_name_and_without_a_home_directory_is_told_what_to_set(arguments: tuple[str, ...]):
    """As in a container that runs with any user ID."""
    as_nobody = ["unshare", "--user", "--map-user=54321", "env", "-u", "HOME", "-u", "PADDLEJOB_STATE"]
    if not shutil.which("unshare") or subprocess.run([*as_nobody, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a user namespace")
    done = subprocess.run([*as_nobody, *START, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    fact = "pdj: no home directory is known: HOME is not set, and there is no user with ID 54321; set HOME"
    assert done.stderr.startswith(fact)


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Called:
    """What `pdj` prints, and its exit status, when a verb raises this error."""

    def broken(**_: Any) -> None:
        raise error

    monkeypatch.setattr(main_module, "app", broken)
    return pdj()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/s"), f"/s: No space left on device; {FULL}"),
        (OSError(errno.EDQUOT, "quota", "/x"), f"/x: quota; {FULL}"),
        (OSError(errno.EROFS, "no", "/x"), "/x: no; set PADDLEJOB_STATE to a writable directory"),
        (OSError(errno.EACCES, "no", "/x"), "/x: no; set PADDLEJOB_STATE to a writable directory"),
        (OSError(errno.EIO, "broken"), "broken"),
        (OSError("text"), "text"),
    ],
)
def test_an_error_of_the_system_says_what_to_do(error: OSError, message: str, monkeypatch: pytest.MonkeyPatch):
    assert failing(error, monkeypatch) == Called(1, "", f"pdj: {message}\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadInput("wrong"), 2, "pdj: wrong\n"),
        (JobFailed("lost"), 1, "pdj: lost\n"),
        (KeyboardInterrupt(), 130, ""),
        (OSError(errno.EIO, "broken"), 1, "pdj: broken\n"),
        (ZeroDivisionError("x"), 70, "pdj: this is a bug in pdj (ZeroDivisionError: x); set PADDLEJOB_DEBUG=1 for a "),
    ],
)
def test_every_error_is_one_message_and_an_exit_status(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("PADDLEJOB_DEBUG", raising=False)
    done = failing(error, monkeypatch)
    assert (done.returncode, done.stderr.startswith(message), bool(done.stderr)) == (code, True, bool(message))
    if code == 70:
        with pytest.raises(ZeroDivisionError):
            pdj(PADDLEJOB_DEBUG="1")


def test_a_page_of_the_doctor_ends_with_what_to_change(monkeypatch: pytest.MonkeyPatch):
    checks = [
        Check("a", Verdict.GOOD, "fine"),
        Check("b", Verdict.NOTE, "so", "know this"),
        Check("c", Verdict.NOTE, "x"),
    ]
    monkeypatch.setattr(machine, "check_machine", lambda python: checks)
    good = pdj("doctor", "--local")
    assert good.stdout.splitlines()[1].split() == ["a", "good", "fine"]
    assert good.stdout.endswith("Notes:\n  b: know this\n\nNo changes needed.\n")
    assert good.returncode == 0
    checks.append(Check("d", Verdict.CHANGE, "bad", "do that"))
    bad = pdj("doctor", "--local")
    assert "Changes needed:\n  d: do that\n\nNotes:" in bad.stdout and "No changes needed." not in bad.stdout
    assert bad.returncode == 1


def test_the_doctor_judges_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert machine.check_paddle({"paddle": "2.6.2", "cuda": True}).found == "2.6.2, GPU build"
    assert machine.check_paddle({"paddle": "2.6.2", "cuda": False}).found == "2.6.2, CPU build"
    assert machine.check_parameter_server({"ps": True}).verdict is Verdict.GOOD
    assert machine.check_parameter_server({}).found == "unknown without paddle"
    assert machine.check_python("/p", {"error": "no"}).found == "/p cannot be run: no"
    assert machine.check_python("/p", {"python": "3.11"}).found == "3.11 (/p)"
    monkeypatch.setattr(machine, "available_memory", lambda: 2 * machine.GIB - 1)
    assert machine.check_memory().verdict is Verdict.CHANGE
    monkeypatch.setattr(machine, "available_memory", lambda: 2 * machine.GIB)
    assert machine.check_memory().verdict is Verdict.GOOD
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "a" / "b"))
    for free, disk, shared in (
        (machine.GIB, "good", "good"),
        (machine.GIB - 1, "change", "good"),
        (1000, "change", "note"),
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert (str(machine.check_disk().verdict), str(machine.check_shared_memory().verdict)) == (disk, shared)
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    (only,) = machine.check_machine()
    assert (only.verdict, "use Linux for `pdj run`" in only.advice) == (Verdict.CHANGE, True)


@pytest.mark.parametrize(
    ("gpus", "note", "facts", "verdict", "found"),
    [
        (0, "", {}, "note", "none"),
        (0, "driver too old; update it", {}, "change", "none: driver too old"),
        (2, "", {"paddle": "2", "cuda": False}, "change", "2, but paddle is a CPU build"),
        (2, "one is lost; reset it", {"paddle": "2", "cuda": True}, "note", "2; one is lost"),
        (2, "", {}, "good", "2"),
    ],
)
def test_the_doctor_judges_gpus(
    gpus: int, note: str, facts: dict[str, Any], verdict: str, found: str, monkeypatch: pytest.MonkeyPatch
):
    made = Machine("m", 1.0, 1, tuple(Gpu(f"u{index}", str(index)) for index in range(gpus)), note)
    monkeypatch.setattr("paddlejob.local.machine.resources.this_machine", lambda: made)
    (check,) = machine.check_gpus(facts)
    assert (str(check.verdict), check.found) == (verdict, found)
    if note:
        assert check.advice == note.partition("; ")[2]


def test_the_doctor_judges_devices_of_other_vendors(monkeypatch: pytest.MonkeyPatch):
    made = Machine("m", 1.0, 1, (Gpu("/dev/xpu0", "0", "xpu"), Gpu("/dev/dri/renderD128", "0", "dcu")))
    monkeypatch.setattr("paddlejob.local.machine.resources.this_machine", lambda: made)
    none, xpu, dcu = machine.check_gpus({"paddle": "3", "cuda": False, "kinds": ["xpu"]})
    assert (none.found, xpu.what, xpu.found, str(xpu.verdict)) == ("none", "Kunlunxin devices", "1", "good")
    assert (dcu.found, dcu.advice) == ("1, which paddle is not built for", "install PaddlePaddle for dcu")


def test_progress_of_data_is_a_line_once_in_a_while(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]

    def stage(*_: Any, progress: Any, **__: Any) -> None:
        progress("copy", 1 << 20, 9 << 20)
        now[0] += 5
        progress("copy", 2 << 20, 9 << 20)
        now[0] += 1
        progress("copy", 3 << 20, None)
        progress("copy", 9 << 20, 9 << 20)
        progress("empty", 0, 0)
        raise KeyboardInterrupt

    monkeypatch.setattr("paddlejob.cli.verbs.data.monotonic", lambda: now[0])
    monkeypatch.setattr("paddlejob.data.stage", stage)
    done = pdj("data", "stage", "from", "to")
    assert done.stderr.splitlines() == [
        "copy: 2 of 9 MiB",
        "copy: 9 of 9 MiB",
        "Stopped. Completed work is kept; run the same command again to resume.",
    ]
    assert done.returncode == 130
