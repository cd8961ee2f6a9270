"""Commands in messages work as they are printed: they select the cluster and the namespace of the job."""

from __future__ import annotations

import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.cli.install.install import Installation
from paddlejob.cli.output.tables import job_table
from paddlejob.local.state.store import JobStore
from paddlejob.operator.manifests import IMAGE
from paddlejob.targets.cluster.operators import Operator, unwatched_message
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.target import no_such_job
from paddlejob.targets.views import JobView
from tests.support import called_pdj
from tests.support.builders import job
from tests.support.pdj import Pdj


@pytest.fixture
def pdj(tmp_path: Path) -> Iterator[Pdj]:
    made = Pdj(tmp_path)
    yield made
    made.close()


def commands(text: str) -> list[list[str]]:
    return [shlex.split(command) for command in re.findall(r"`pdj ([^`]+)`", text)]


def test_the_commands_for_a_job_in_another_namespace_work_as_printed(pdj: Pdj) -> None:
    started = pdj("run", "-d", "-n", "team", pdj.write(command=["bash", "-c", "echo hello; sleep 300"]))
    printed = commands(started.stdout)
    assert [command[0] for command in printed] == ["get", "logs", "delete"]
    assert all(command[-2:] == ["-n", "team"] for command in printed)
    get, _, delete = printed
    assert pdj.here(*get).returncode == 0
    assert pdj.here(*delete).returncode == 0


def test_an_interrupted_job_is_resumed_by_the_command_that_is_shown(pdj: Pdj) -> None:
    running = pdj.start("run", "-n", "team", pdj.write(command=["sleep", "300"]))
    target = LocalTarget(pdj.store)
    while not (seen := target.find(("team", "job"))) or seen.phase != "Running":
        assert running.poll() is None
        time.sleep(0.05)
    running.terminate()
    running.wait()
    shown = pdj.here("why", "job", "-n", "team").stdout
    resume = commands(shown)[-1]
    assert resume == ["resume", "job", "-n", "team"]
    assert pdj(*resume).returncode == 0, shown


def test_the_summary_of_a_run_names_commands_with_the_namespace(pdj: Pdj) -> None:
    failed = pdj("run", "-n", "team", pdj.write(command=["false"], backoffLimit=0))
    (why,) = commands(failed.stdout)
    assert why == ["why", "job", "-n", "team"]
    assert pdj.here(*why).returncode == 0
    missing = pdj.here("logs", "job", "-n", "team", "--role", "ps").stderr
    assert commands(missing) == [["get", "job", "-n", "team"]]


def test_a_suspended_job_is_resumed_by_the_command_in_its_status(pdj: Pdj) -> None:
    file = pdj.write(command=["sleep", "300"])
    running = pdj.start("run", "-n", "team", file)
    target = LocalTarget(pdj.store)
    while not (seen := target.find(("team", "job"))) or seen.phase != "Running":
        assert running.poll() is None
        time.sleep(0.05)
    assert all(command[-2:] == ["-n", "team"] for command in commands(pdj("run", "-n", "team", file).stderr))
    running.send_signal(signal.SIGINT)
    printed = running.communicate(timeout=60)[0]
    assert commands(printed)[-1] == ["resume", "job", "-n", "team"]
    stored = pdj.store.folder(("team", "job"))
    job = stored.job()
    assert job is not None
    assert commands(job.status.message) == [["resume", "job", "-n", "team"]]
    assert commands(stored.events()[0]["message"]) == [["resume", "job", "-n", "team"]]


def test_who_looks_in_the_wrong_namespace_learns_how_to_start_a_job_there(tmp_path: Path) -> None:
    target = LocalTarget(JobStore(tmp_path))
    assert str(no_such_job(target, "team", "mnist", [])).endswith("start one with `pdj run FILE -n team`")
    assert str(no_such_job(target, "default", "mnist", [])).endswith("start one with `pdj run FILE`")


def test_the_list_names_the_namespace_unless_it_is_the_expected_one() -> None:
    made = job(status={"phase": "Running"})
    seen = JobView(made, {}, "Running")
    assert job_table([seen], expected="default").split()[0] == "NAME"
    assert job_table([seen], expected="training").split()[0] == "NAMESPACE"
    assert job_table([seen]).split()[0] == "NAME"


def test_install_hints_select_the_cluster() -> None:
    assert unwatched_message([], "team", " --context west").endswith("run `pdj install --context west`")


@pytest.mark.parametrize(
    ("installed", "wanted", "expected"),
    [
        ("registry.example.com:5000/operator:1", "", "registry.example.com:5000/operator:1"),
        ("paddlejob/operator:0.0.1", "", ""),
        ("registry.example.com/operator@sha256:12", "other:2", "other:2"),
    ],
)
def test_a_second_installation_keeps_an_image_of_ones_own(installed: str, wanted: str, expected: str) -> None:
    current = Operator("paddle-system", "operator", "", installed, replicas=3, available=3)
    kept = Installation("paddle-system", "", wanted).keeping(current)
    assert (kept.image, kept.replicas) == (expected, 3)
    images = [
        one["spec"]["template"]["spec"]["containers"][0]["image"] for one in kept.objects if one["kind"] == "Deployment"
    ]
    assert images == [expected or IMAGE]
    assert Installation("paddle-system", "", replicas=1).keeping(current).replicas == 1


@pytest.mark.parametrize("name", ["frobnicate", "lst"])
def test_an_unknown_command_is_one_message_like_all_others(name: str) -> None:
    done = called_pdj.pdj(name)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"pdj: unknown command {name}; ")
