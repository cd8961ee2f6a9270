"""The Python API on this machine, in programs of their own, as a user runs them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import paddlejob as pj
from paddlejob.api.types import Role
from paddlejob.client.notebook import curve
from tests.support.pdj import Pdj, wait

PRINTS = """\
import os, sys, time
for step in range(1, 4):
    print(f"step={step}/3 loss={1 / step}", flush=True)
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""
WAITS = "import time; print('started', flush=True); time.sleep(300)"


@pytest.fixture
def here(pdj: Pdj, monkeypatch: pytest.MonkeyPatch) -> Pdj:
    """The API in this process, with the state directory of the test."""
    monkeypatch.setenv("PADDLEJOB_STATE", str(pdj.state))
    monkeypatch.chdir(pdj.folder)
    (pdj.folder / "train.py").write_text(PRINTS)
    (pdj.folder / "waits.py").write_text(WAITS)
    return pdj


def test_a_job_is_run_followed_and_measured(here: Pdj):
    run = pj.run(pj.collective("train.py", workers=2, env={"A": "1"}))
    lines = list(run.logs(follow=True, role="worker", index=1))
    assert lines[0] == "step=1/3 loss=1.0"
    assert run.wait(timeout=60).phase == "Completed"
    assert run.metrics("loss") == [(1, 1.0), (2, 0.5), (3, 1 / 3)]
    assert list(run.logs(index=0, grep="loss=[01]", tail=2, since=3600)) == lines[1:]
    assert run.watch().phase == "Completed"
    assert "train completed" in run.why()
    assert {pod.state for pod in run.view().pods} == {"Succeeded"}
    html = run._repr_html_()
    assert "<polyline" in html
    assert "worker-1" in html
    again = pj.attach("train")
    assert again.phase == "Completed"
    again.delete()
    with pytest.raises(pj.PaddleJobError, match="job train not found"):
        pj.attach("train")


def test_a_failed_job_raises_with_its_reason(here: Pdj):
    job = pj.collective("train.py", ["3"])
    job.document["spec"]["backoffLimit"] = 0
    with pytest.raises(pj.JobFailed, match="exit status 3") as caught:
        pj.run(job).wait(timeout=60)
    assert caught.value.reason == "BackoffLimitExceeded"


def test_the_twins_are_awaited(here: Pdj):
    async def use() -> list[str]:
        run = pj.run(pj.collective("train.py"))
        lines = [line async for line in run.logs_async(follow=True)]
        assert (await run.wait_async()).phase == "Completed"
        return lines

    assert len(asyncio.run(use())) == 3


def test_a_job_of_servers_is_scaled_suspended_and_resumed(here: Pdj):
    job = pj.parameter_server("waits.py", servers=1, workers=2, name="ps")
    job.document["spec"]["elastic"] = 1
    run = pj.run(job)
    here.until("ps", phase="Running")
    run.scale(workers=3)
    wait(lambda: run.phase == "Running" and run.status.role(Role.WORKER).ready == "3/3", "three workers run")
    run.suspend()
    here.until("ps", phase="Suspended")
    with pytest.raises(pj.PaddleJobError, match="suspend"):
        run.wait(timeout=60)
    run.delete()


def test_a_wait_that_takes_too_long_says_so_and_the_job_goes_on(here: Pdj):
    run = pj.run(pj.collective("waits.py"))
    with pytest.raises(TimeoutError, match=r"waits is still \w+ after 0.5 s"):
        run.wait(timeout=0.5)
    run.interrupt()
    here.until_nothing_lives()


@pytest.mark.parametrize("use", ["run.wait()", "list(run.logs(follow=True))"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_that_is_interrupted_or_killed_leaves_no_process_behind(here: Pdj, number: signal.Signals, use: str):
    script = f"import paddlejob as pj; run = pj.run(pj.collective('waits.py', workers=2)); {use}"
    started = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=here.folder,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    here.until("waits", phase="Running")
    os.kill(started.pid, number)
    _, errors = started.communicate(timeout=60)
    assert (number is signal.SIGINT) == ("KeyboardInterrupt" in errors)
    wait(lambda: here.processes() == [], "all processes end")


def test_a_cell_that_follows_a_job_and_is_interrupted_ends_it_although_the_notebook_goes_on(here: Pdj):
    script = """
import threading, _thread, paddlejob as pj
run = pj.run(pj.collective("waits.py", workers=2))
try:
    for line in run.logs(follow=True):
        threading.Timer(0.5, _thread.interrupt_main).start()
except KeyboardInterrupt:
    print(run.phase)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=here.folder, capture_output=True, text=True, timeout=60)
    assert done.stdout == "Suspended\n", done.stderr


def test_a_job_is_a_value_that_is_started_in_several_namespaces_and_from_several_threads(here: Pdj):
    job = pj.collective("train.py")
    with ThreadPoolExecutor(3) as threads:
        runs = list(threads.map(lambda namespace: pj.run(job, namespace=namespace), ["a", "b", ""]))
    assert [run.wait(timeout=60).phase for run in runs] == ["Completed"] * 3
    assert [run.namespace for run in runs] == ["a", "b", "default"]
    assert "namespace" not in job.document["metadata"]


def test_what_pdj_run_would_note_is_a_warning(here: Pdj):
    job = pj.collective("train.py")
    job.document["spec"]["managedBy"] = "example.com/other"
    with pytest.warns(UserWarning, match="No effect on one machine, only on a cluster"):
        run = pj.run(job)
    assert run.wait(timeout=60).phase == "Completed"


def test_a_job_file_is_loaded_with_the_objects_beside_it(here: Pdj):
    job = pj.load(here.write(command=["true"]))
    assert job.name == "job"
    assert "kind: PaddleJob" in job.to_yaml()
    assert pj.run(job).wait(timeout=60).phase == "Completed"


def test_bad_input_raises_an_error_of_the_project(here: Pdj):
    with pytest.raises(pj.PaddleJobError, match=r"none\.py: no such file"):
        pj.collective("none.py")
    with pytest.raises(pj.PaddleJobError, match="replicas"):
        pj.run(pj.collective("train.py", workers=0))
    assert not (here.state / "jobs").exists()


def test_importing_the_package_imports_nothing_else():
    loaded = "import sys, paddlejob; print([name for name in sys.modules if name.startswith('paddlejob.')])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert set(pj.__all__) <= set(dir(pj))


def test_a_curve_fits_its_picture(tmp_path: Path):
    points = [(float(step), float(step % 7)) for step in range(100)]
    assert curve(points).count(",") == 100
    assert "nan" not in curve([(1, 2.0), (1, 2.0)])
