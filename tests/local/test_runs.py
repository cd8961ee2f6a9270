"""Jobs of plain programs, through `pdj run` and the verbs that look at a job and change it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.state.store import JobStore
from tests.support.pdj import START, Pdj, wait

WORKS = ["bash", "-c", "echo hello from $TRAINING_ROLE $PADDLE_TRAINER_ID; sleep 0.2"]
SERVES = ["sleep", "300"]
FOREVER = ["sleep", "300"]


MEASURED = """
import sys
from paddlejob.cli.main import main
try:
    main()
finally:
    print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""
"""The command, which then prints the most memory that it held, in KiB. getrusage would count that of its parent too."""
LISTENS = (
    "import os, socket, sys, time; port = int(os.environ['PADDLE_PORT']);"
    "own = socket.create_server((os.environ['POD_IP'], port));"
    "wild = sys.argv[1] == 'wild' and socket.create_server(('', port + 18));"
    "print('bound', own.getsockname(), flush=True); time.sleep(float(sys.argv[2]))"
)
"""As Paddle does: a port at the pod's own address, and in one pod of a job a port on all addresses."""


def test_a_job_completes_and_says_how_long_and_where_its_logs_are(pdj: Pdj):
    done = pdj("run", pdj.write(worker_command=WORKS, ps_command=SERVES, ps=2, workers=2))
    assert done.returncode == 0, done.stderr
    assert "job completed in" in done.stdout
    assert str(pdj.folder_of("job").path / "logs" / "attempt-1") in done.stdout
    assert pdj.log("job", "worker-1") == "hello from TRAINER 1\n"
    assert pdj.processes() == []
    listed = pdj("list").stdout.splitlines()[1].split()
    assert listed[:5] == ["job", "Completed", "PS", "0/2", "0/2"]


def test_other_commands_see_a_detached_job_and_can_end_it(pdj: Pdj):
    started = pdj("run", "--detach", pdj.write(command=FOREVER, workers=2))
    assert started.returncode == 0, started.stderr
    pdj.until("job", phase="Running")
    shown = json.loads(pdj("get", "job", "-o", "json").stdout)
    assert shown["status"]["worker"]["ready"] == "2/2"
    assert yaml.safe_load(pdj("list", "-o", "yaml").stdout)["items"][0]["metadata"]["name"] == "job"
    assert "all pods are running" in pdj("why", "job").stdout
    assert pdj("delete", "job").returncode == 0
    pdj.until_nothing_lives()
    assert pdj("get", "job").returncode == 2


def test_a_name_that_runs_already_is_rejected_and_the_running_job_is_left_alone(pdj: Pdj):
    file = pdj.write(command=FOREVER)
    pdj("run", "-d", file)
    pdj.until("job", phase="Running")
    again = pdj("run", file)
    assert again.returncode == 2
    assert again.stderr.count("\n") <= 2
    assert "already running" in again.stderr
    assert pdj.status("job").phase == "Running"


def test_a_program_that_keeps_failing_fails_the_job_with_the_end_of_its_log(pdj: Pdj):
    failed = pdj("run", pdj.write(command=["bash", "-c", "echo ValueError: no column; exit 3"], backoffLimit=1))
    assert failed.returncode == 1
    assert "BackoffLimitExceeded" in failed.stderr
    assert "ValueError: no column (worker 0, exit status 3); see its log; failed 2 times" in failed.stderr
    assert pdj.status("job").restarts == 1
    assert pdj.log("job", "worker-0", attempt=2) == pdj.log("job", "worker-0", attempt=1)
    explained = pdj("why", "job").stdout
    assert "restart 1 of 1" in explained
    assert "pdj logs job --role worker --index 0" in explained


def test_a_command_that_does_not_exist_is_named_and_not_tried_again(pdj: Pdj):
    failed = pdj("run", pdj.write(command=["trian.py"]))
    assert failed.returncode == 1
    assert "could not start: trian.py: no such command; correct its command" in failed.stderr
    assert (pdj.status("job").reason, pdj.status("job").attempt) == ("StartError", 1)


def test_a_command_that_a_shell_does_not_find_is_not_tried_again(pdj: Pdj):
    failed = pdj("run", pdj.write(command=["sh", "-c", "exec trian.py"]))
    assert failed.returncode == 1
    assert "CommandNotFound: job-worker-0 failed with exit status 127" in failed.stderr
    assert pdj.status("job").attempt == 1


def test_a_missing_config_map_fails_the_job_at_once_with_the_remedy(pdj: Pdj):
    missing = {"envFrom": [{"configMapRef": {"name": "absent"}}]}
    failed = pdj("run", pdj.write(command=["true"], container=missing))
    assert failed.returncode == 1
    assert "ConfigMap absent does not exist; add it to the job file" in failed.stderr
    assert pdj.status("job").attempt <= 1


def test_a_missing_module_fails_the_job_without_a_restart(pdj: Pdj):
    failed = pdj("run", pdj.write(command=["python", "-c", "import absent"], backoffLimit=1))
    assert failed.returncode == 1
    assert "ModuleNotFoundError: No module named 'absent'" in failed.stderr
    assert pdj.status("job").restarts == 0


def test_no_restart_fails_at_the_first_failure_of_this_run_only(pdj: Pdj):
    file = pdj.write(command=["sh", "-c", "exit 3"], backoffLimit=1)
    assert pdj("run", "--no-restart", file).returncode == 1
    assert (pdj.status("job").reason, pdj.status("job").restarts) == ("BackoffLimitExceeded", 0)
    assert pdj("run", file).returncode == 1
    assert pdj.status("job").restarts == 1


def test_a_killed_server_restarts_the_whole_job(pdj: Pdj):
    once = "test -e started && exit 0; touch started; sleep 300"
    running = pdj.start("run", pdj.write(ps=1, ps_command=SERVES, worker_command=["bash", "-c", once]))
    pdj.until("job", phase="Running")
    wait(lambda: (pdj.folder / "started").exists(), lambda: "the first attempt")
    server = next(pod for pod in pdj.folder_of("job").pods() if pod.role == "ps")
    for pid in descendants(server.pid):
        os.kill(pid, signal.SIGKILL)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 0, output
    assert pdj.status("job").restarts == 1
    assert "1 restart" in output


def test_two_jobs_at_once_do_not_get_in_each_others_way(pdj: Pdj):
    serves, works = ["python", "-c", LISTENS, "wild", "300"], ["python", "-c", LISTENS, "own", "2"]
    files = [pdj.write(name, ps_command=serves, worker_command=works, ps=1, workers=2) for name in ("one", "two")]
    done = pdj("run", *files)
    assert done.returncode == 0, done.stderr + done.stdout
    assert [pdj.status(name).restarts for name in ("one", "two")] == [0, 0]
    bound = [pdj.log(name, f"worker-{index}").strip() for name in ("one", "two") for index in range(2)]
    assert len(set(bound)) == 4


def test_a_job_of_32_processes_runs(pdj: Pdj):
    done = pdj("run", pdj.write(command=["bash", "-c", "echo $PADDLE_TRAINERS_NUM"], workers=32), timeout=90)
    assert done.returncode == 0, done.stderr
    assert [pdj.log("job", f"worker-{index}").strip() for index in range(32)] == ["32"] * 32


def test_a_path_with_spaces_and_chinese_characters(pdj: Pdj):
    pdj.folder = pdj.folder / "训练 作业"
    pdj.folder.mkdir()
    pdj.state = pdj.folder / "状态 目录"
    pdj.environment["PADDLEJOB_STATE"] = str(pdj.state)
    pdj.store = JobStore(pdj.state)
    (pdj.folder / "程序.py").write_text("print('训练', flush=True)")
    done = pdj("run", pdj.write(command=["python", "程序.py"]))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "训练\n"
    assert pdj("logs", "job").stdout == "训练\n"


def test_a_log_of_a_gigabyte_costs_nothing(pdj: Pdj):
    writer = "head -c 1000000000 /dev/zero; echo; echo the end"
    done = pdj("run", pdj.write(command=["bash", "-c", writer]))
    assert done.returncode == 0, done.stderr
    log = pdj.folder_of("job").log(1, "job-worker-0")
    assert log.stat().st_size > 1_000_000_000
    begun = time.monotonic()
    assert pdj("logs", "job", "--tail", "1").stdout == "the end\n"
    assert time.monotonic() - begun < 10
    log.unlink()


@pytest.mark.full
def test_following_a_log_of_a_gigabyte_needs_little_memory_and_begins_at_once(pdj: Pdj):
    line = "step=1/2 loss=0.5 of a program that prints a lot"
    writes = f"echo first; while [ ! -e seen ]; do sleep 0.1; done; yes '{line}' | head -c 1000000000; echo; echo last"
    pdj("run", "-d", pdj.write(command=["bash", "-c", writes]))
    command = [sys.executable, "-c", MEASURED, "logs", "-f", "job"]
    following = subprocess.Popen(
        command, env=pdj.environment, cwd=pdj.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert following.stdout and following.stderr
    assert following.stdout.readline() == b"first\n", "while the job runs"
    assert pdj.status("job").phase == "Running"
    (pdj.folder / "seen").touch()
    size, last = 0, b""
    while piece := following.stdout.read(1 << 20):
        size, last = size + len(piece), piece
    assert following.wait() == 0
    assert last.endswith(b"last\n")
    assert size > 1_000_000_000
    assert int(following.stderr.read()) < 50 * 1024, "KiB"
    pdj.folder_of("job").log(1, "job-worker-0").unlink()


def test_a_suspended_job_continues_when_resumed_and_an_elastic_one_is_scaled(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=FOREVER, workers=2, elastic=1))
    pdj.until("job", phase="Running")
    assert "suspended" in pdj("suspend", "job").stdout
    pdj.until("job", phase="Suspended")
    pdj.until_nothing_lives()
    assert pdj("scale", "job", "3").returncode == 0
    assert pdj("resume", "job").returncode == 0
    assert pdj.until("job", phase="Running").role("worker").ready == "3/3"
    pdj("scale", "job", "1")
    wait(lambda: pdj.status("job").role("worker").ready == "1/1", lambda: f"one worker: {pdj.status('job')}")
    assert pdj.status("job").restarts == 0


def test_logs_are_followed_over_a_restart_until_the_end(pdj: Pdj):
    once = "echo begun; test -e started && exit 0; touch started; sleep 1; exit 1"
    pdj("run", "-d", pdj.write(command=["bash", "-c", once]))
    followed = pdj("logs", "-f", "job")
    assert followed.stdout.count("begun") == 2, followed
    pdj.until("job", phase="Completed")


def test_a_job_past_its_deadline_fails(pdj: Pdj):
    failed = pdj("run", pdj.write(command=FOREVER, activeDeadlineSeconds=2))
    assert failed.returncode == 1
    assert "DeadlineExceeded" in failed.stderr


def test_a_program_that_uses_more_memory_than_its_limit_is_ended_and_that_is_named(pdj: Pdj):
    eats = ["python", "-c", "import time; held = bytearray(400_000_000); time.sleep(60)"]
    limit = {"resources": {"limits": {"memory": "200Mi"}}}
    failed = pdj("run", pdj.write(command=eats, container=limit, backoffLimit=0))
    assert failed.returncode == 1
    assert "ran out of memory" in failed.stderr
    assert "raise resources.limits.memory" in failed.stderr


def test_a_job_that_must_wait_for_another_says_so_and_starts_when_it_can(pdj: Pdj):
    half = {"resources": {"requests": {"cpu": len(os.sched_getaffinity(0))}}}
    pdj("run", "-d", pdj.write("first", command=FOREVER, container=half))
    pdj.until("first", phase="Running")
    pdj("run", "-d", pdj.write("second", command=["true"], container=half))
    pdj.until("second", reason="Unschedulable")
    assert "first" in pdj("why", "second").stdout
    pdj("delete", "first")
    pdj.until("second", phase="Completed")


def test_a_full_disk_fails_the_job_with_that_reason_and_pdj_continues(pdj: Pdj):
    """In a mount namespace of its own, with a small disk for the state."""
    pdj.state.mkdir()
    file = pdj.write(command=["bash", "-c", "yes a line of a log; exit 1"], backoffLimit=0)
    run = " ".join(f"'{word}'" for word in [*START, "run", file])
    why = " ".join(f"'{word}'" for word in [*START, "why", "job"])
    delete = " ".join(f"'{word}'" for word in [*START, "delete", "job"])
    script = f"mount -t tmpfs -o size=2m small '{pdj.state}' && {{ {run}; echo status $?; {why}; {delete}; }}"
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script], env=pdj.environment, capture_output=True, text=True, timeout=90
    )
    assert "status 1" in done.stdout, done
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Free some space" in done.stdout
    assert "job deleted" in done.stdout, "which frees the disk"


def test_the_end_of_a_job_with_no_time_to_live_is_still_shown(pdj: Pdj):
    short = pdj.write("short", command=["true"], ttlSecondsAfterFinished=0)
    long = pdj.write("long", command=["sleep", "2"])
    done = pdj("run", short, long)
    assert done.returncode == 0, done.stderr
    assert "short completed" in done.stdout
    assert "short" not in pdj("list").stdout


def test_the_last_lines_of_a_completed_job_stay_on_the_screen(pdj: Pdj):
    done = pdj("run", pdj.write(command=["echo", "final auc=0.9"]))
    assert done.stdout.endswith("\n  final auc=0.9\n")


def test_of_a_failed_job_nothing_is_counted_as_running(pdj: Pdj):
    file = pdj.write(ps=1, ps_command=["sleep", "60"], worker_command=["false"], backoffLimit=0, cleanPodPolicy="Never")
    assert pdj("run", file).returncode == 1
    row = pdj("list").stdout.splitlines()[1].split()
    assert row[:5] == ["job", "Failed", "PS", "0/1", "0/1"]


def test_a_job_that_starts_again_instead_of_resuming_is_noted(pdj: Pdj):
    file = pdj.write(command=["sleep", "60"], pod={"terminationGracePeriodSeconds": 1})
    assert pdj("run", "-d", file).returncode == 0
    pdj.until("job", phase="Running")
    assert pdj("suspend", "job").returncode == 0
    pdj.until("job", phase="Suspended")
    again = pdj("run", "-d", file)
    assert "to continue it instead, use `pdj resume job`" in again.stderr
    assert pdj("delete", "job").returncode == 0


def test_pods_in_one_directory_do_not_share_the_launchers_logs(pdj: Pdj):
    file = pdj.write(workers=2, command=["sh", "-c", "echo $PADDLE_LOG_DIR"])
    assert pdj("run", file).returncode == 0
    log_directories = {pdj.log("job", f"worker-{index}") for index in (0, 1)}
    assert len(log_directories) == 2
    assert "\n" not in log_directories
