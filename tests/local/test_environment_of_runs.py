"""How a job is started and what is left of it must not depend on the terminal, the shell or a crash."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess

from tests.support.pdj import START, Pdj, wait

FOREVER = ["sleep", "300"]


def test_a_closed_standard_input_does_not_matter(pdj: Pdj):
    command = [*START, "run", pdj.write(command=["bash", "-c", "echo trained"])]
    shell = ["bash", "-c", 'exec "$@" <&-', "shell", *command]
    done = subprocess.run(shell, env=pdj.environment, cwd=pdj.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "trained\n"


def test_resume_uses_the_environment_of_the_run_not_of_the_one_who_resumes(pdj: Pdj):
    pdj.environment |= {"DATASET": "/data/first", "TOKEN": "secret"}
    pdj("run", "-d", pdj.write(command=["bash", "-c", "echo $DATASET; exec sleep 300"]))
    pdj.until("job", phase="Running")
    pdj("suspend", "job")
    pdj.until("job", phase="Suspended")
    wait(lambda: not pdj.folder_of("job").has_runner, lambda: "the end of the engine")
    pdj.environment |= {"DATASET": "/data/other"}
    assert pdj("resume", "job").returncode == 0
    attempt = 2
    wait(lambda: bool(pdj.log("job", "worker-0", attempt)), lambda: "output after the resume")
    assert pdj.log("job", "worker-0", attempt) == "/data/first\n"
    mode = (pdj.folder_of("job").path / "run.json").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_killed_first_process_leaves_nothing_running_without_namespaces(pdj: Pdj):
    pdj.environment["PADDLEJOB_NAMESPACES"] = "0"
    command = ["bash", "-c", "setsid sleep 300 & exec sleep 300"]
    pdj("run", "-d", pdj.write(command=command, backoffLimit=0))
    pdj.until("job", phase="Running")
    records = json.loads((pdj.folder_of("job").path / "pods.json").read_text())
    os.kill(records[0]["pid"], signal.SIGKILL)
    pdj.until("job", phase="Failed")
    pdj.until_nothing_lives()


def test_shared_memory_counts_against_the_limit(pdj: Pdj):
    hungry = (
        "import mmap, time; m = mmap.mmap(-1, 300 << 20); [m.write(bytes(1 << 20)) for _ in range(300)]; time.sleep(20)"
    )
    limits = {"resources": {"limits": {"memory": "150Mi"}}}
    failed = pdj("run", pdj.write(command=["python3", "-c", hungry], container=limits, backoffLimit=0))
    assert "ran out of memory" in failed.stderr


def test_the_files_of_pods_of_a_killed_engine_are_removed_at_the_next_start(pdj: Pdj):
    pod = {"volumes": [{"name": "cache", "emptyDir": {}}]}
    running = pdj.start("run", pdj.write(command=FOREVER, pod=pod))
    pdj.until("job", phase="Running")
    pods = pdj.folder_of("job").path / "pods"
    (left,) = pods.iterdir()
    for pid in pdj.processes():
        os.kill(pid, signal.SIGKILL)
    running.wait()
    pdj.until_nothing_lives()
    assert left.exists()
    assert pdj("run", pdj.write("other", command=["true"])).returncode == 0
    assert not left.exists()
