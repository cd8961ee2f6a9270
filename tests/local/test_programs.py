"""Programs without a job file, on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from paddlejob.local.sandbox.supervisor import probe
from tests.support.pdj import Pdj
from tests.support.programs import write_project

TRAINS = pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="needs PaddlePaddle")
ISOLATED = pytest.mark.skipif(not probe()[0], reason="no mount namespaces here")
EXAMPLES = Path(__file__).parents[2] / "src" / "paddlejob" / "examples"
LONG = 180.0
PRINTS = "import os, sys; print(os.environ['PADDLE_TRAINER_ID'], os.environ.get('LR'), os.getcwd(), sys.argv[1:])\n"


@TRAINS
@pytest.mark.xdist_group("training")
def test_a_program_trains_in_two_workers(pdj: Pdj):
    write_project(pdj.folder / "project")
    pdj.folder = pdj.folder / "project"
    done = pdj("run", "train.py", "--workers", "2", "--", "--lr", "0.1", timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "train completed in" in done.stdout
    losses = re.findall(r"step=\d+/30 loss=([\d.]+) world=2 --lr 0.1", pdj.log("train", "worker-0"))
    assert len(losses) == 30
    assert float(losses[-1]) < 0.1 * float(losses[0])


@TRAINS
@pytest.mark.full
@pytest.mark.xdist_group("training")
def test_a_program_trains_with_parameter_servers(pdj: Pdj):
    project = pdj.folder / "project"
    shutil.copytree(EXAMPLES / "wide_and_deep", project)
    pdj.folder = project
    done = pdj("run", "train.py", "--ps", "2", "--workers", "2", timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"final auc=([\d.]+)", pdj.log("train", "worker-0"))
    assert found
    assert float(found[1]) > 0.8


def test_the_program_gets_its_arguments_environment_and_directory(pdj: Pdj):
    (pdj.folder / "sub").mkdir()
    (pdj.folder / "sub" / "show_it.py").write_text(PRINTS)
    done = pdj("run", "sub/show_it.py", "--workers", "2", "--env", "LR=3", "--name", "shown", "--", "-x", "a b")
    assert done.returncode == 0, done.stderr
    assert pdj.log("shown", "worker-1") == f"1 3 {pdj.folder} ['-x', 'a b']\n"


def test_a_module_and_a_shell_command_run_too(pdj: Pdj):
    (pdj.folder / "mine").mkdir()
    (pdj.folder / "mine" / "fit.py").write_text(PRINTS)
    assert pdj("run", "-m", "mine.fit", "--", "x").returncode == 0
    assert pdj.log("mine-fit", "worker-0").endswith("['x']\n")
    assert pdj("run", "--name", "shell", "--", "sh", "-c", "echo $PADDLE_TRAINERS_NUM of them").returncode == 0
    assert pdj.log("shell", "worker-0") == "1 of them\n"


@ISOLATED
def test_a_volume_is_mounted_under_its_name(pdj: Pdj):
    (pdj.folder / "store").mkdir()
    (pdj.folder / "store" / "data.txt").write_text("here\n")
    done = pdj("run", "--volume", f"data={pdj.folder / 'store'}", "--name", "reads", "--", "cat", "/mnt/data/data.txt")
    assert done.returncode == 0, done.stderr
    assert pdj.log("reads", "worker-0") == "here\n"


def test_the_job_of_a_program_can_be_printed_and_kept(pdj: Pdj):
    (pdj.folder / "train.py").write_text(PRINTS)
    shown = pdj("run", "train.py", "--workers", "3", "--dry-run")
    assert yaml.safe_load(shown.stdout)["spec"]["worker"]["replicas"] == 3
    assert not (pdj.state / "jobs").exists()
    done = pdj("run", "train.py", "--save", "job.yaml", "--image", "paddle:1")
    assert done.returncode == 0, done.stderr
    again = pdj("run", "job.yaml", "--workers", "2", "--env", "LR=5", "--name", "again")
    assert again.returncode == 0, again.stderr
    assert pdj.log("again", "worker-1").startswith("1 5 ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "pdj: name a job file or a program, such as"),
        (("none.py",), "pdj: none.py: no such file"),
        (("here.py", "other.yaml"), "pdj: here.py, other.yaml: name one program, or job files, in one command"),
        (("here.py", "--workers", "0"), "pdj: --workers must be greater than or equal to 1; see"),
        (("folder.py",), "pdj: folder.py is a directory; name the program in it"),
        (("pipe.py",), "pdj: pipe.py is not a file"),
        (("here.py", "--image", "a", "--image", "b"), "pdj: --image b: all workers have one image; name only a"),
        (("here.py", "--env", "A-B=1"), "pdj: --env A-B=1 must have the form NAME=VALUE"),
        (("here.py", "--env", "NOT_SET_HERE"), "pdj: --env NOT_SET_HERE is not set here"),
        (("here.py", "--image", "two words"), "pdj: --image two words is not the name of an image"),
        (("here.py", "--save", "here.py"), "pdj: here.py already exists; choose another name or remove it first"),
        (("job.yaml", "--", "x"), "pdj: -- x: only a program takes arguments"),
        (("job.yaml", "--ps", "1"), "pdj: --ps: the job has no parameter servers"),
        ((".",), "pdj: . is a directory"),
    ],
)
def test_bad_input_is_one_message_and_nothing_runs(pdj: Pdj, arguments: tuple[str, ...], expected: str):
    (pdj.folder / "here.py").write_text(PRINTS)
    (pdj.folder / "folder.py").mkdir()
    os.mkfifo(pdj.folder / "pipe.py")
    pdj.write(command=["true"])
    done = pdj("run", *arguments)
    assert done.returncode == 2, done.stdout
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not (pdj.state / "jobs").exists()


UNREACHABLE = """
apiVersion: v1
kind: Config
current-context: none
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {token: none}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
"""


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("none.py",), 2, "pdj: none.py: no such file\n"),
        (("empty",), 2, "pdj: empty is a directory without a job file; create one with"),
        (("here.py", "--workers", "0"), 2, "pdj: --workers must be greater than or equal to 1; see"),
        (("here.py", "--image", "two words"), 2, "pdj: --image two words is not the name of an image"),
        (("here.py", "--image", "i", "--save-logs", "d"), 2, "pdj: --save-logs works with --follow and a single job"),
        (("here.py", "--image", "i", "--code", "."), 1, "is the API server http://127.0.0.1:1 up and reachable?"),
    ],
)
def test_bad_input_of_a_submission_is_one_message_and_leaves_nothing(
    pdj: Pdj, arguments: tuple[str, ...], status: int, expected: str
):
    """Missing permissions are in tests/apiserver/test_code.py."""
    (pdj.folder / "here.py").write_text(PRINTS)
    (pdj.folder / "empty").mkdir()
    (pdj.folder / "kubeconfig").write_text(UNREACHABLE)
    pdj.environment |= {"KUBECONFIG": str(pdj.folder / "kubeconfig"), "XDG_CONFIG_HOME": str(pdj.folder / "config")}
    before = sorted(pdj.folder.iterdir())
    done = pdj("submit", *arguments)
    assert done.returncode == status, done.stdout
    assert expected in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert sorted(pdj.folder.iterdir()) == before
