"""Programs and their options, and verbs for the target, previous runs and jobs of this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from paddlejob.api.program import Overrides
from paddlejob.api.types import Status
from paddlejob.cli import program as programs
from paddlejob.client.files import check_image
from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobStore
from tests.support.builders import NOON, document
from tests.support.called_pdj import pdj
from tests.support.job_views import ENDED


@pytest.mark.parametrize(
    ("files", "module", "after", "problem"),
    [
        (["train.py", "job.yaml"], "", (), "train.py, job.yaml: name one program, or job files, in one command"),
        (["job.yaml"], "mod", (), "job.yaml, mod: name one program"),
        (["absent.py"], "", (), "absent.py: no such file"),
        (["dir.py"], "", (), "dir.py is a directory; name the program in it"),
        (["job.yaml"], "", ("a",), "-- a: only a program takes arguments"),
        ([], "", (), "name a job file or a program, such as `pdj run job.yaml`"),
    ],
)
def test_programs_and_files_are_told_apart(
    files: list[str], module: str, after: tuple[str, ...], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "dir.py").mkdir()
    with pytest.raises(BadInput, match=re.escape(problem)):
        programs.load(files, module, after, Overrides())


def test_a_program_becomes_a_job_with_its_claims_and_a_default_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    wanted = Overrides(claims={"c": "/c"})
    (loaded,) = programs.load(["train.py"], "", ("--x",), wanted, ["data", "/host"], lambda: "i:1")
    container = loaded.jobs[0]["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert (loaded.source, loaded.directory) == ("train.py", str(tmp_path))
    assert (container["image"], container["command"]) == ("i:1", ["python", "train.py", "--x"])
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/mnt/data", "/c"]
    assert programs.load([], "pkg.mod", (), Overrides())[0].source == "pkg.mod"
    assert programs.load([], "", ("echo", "a", "b"), Overrides())[0].source == "echo a"
    (own,) = programs.load([], "pkg.mod", (), Overrides(image="own"), image=lambda: "i:1")
    assert own.jobs[0]["spec"]["worker"]["template"]["spec"]["containers"][0]["image"] == "own"


def test_options_change_the_jobs_of_a_file(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump_all([document(), {"kind": "Secret", "apiVersion": "v1"}]))
    (loaded,) = programs.load([str(path)], "", (), Overrides(workers=7))
    assert (loaded.jobs[0]["spec"]["worker"]["replicas"], loaded.objects[1]["kind"]) == (7, "Secret")
    done = pdj("run", str(path), "--ps", "1")
    assert done.stderr == "pdj: --ps: the job has no parameter servers; add spec.ps to its file\n"


def test_a_program_is_planned_as_it_would_be_run_or_submitted(tmp_path: Path):
    (tmp_path / "train.py").touch()
    options = ("--workers", "2", "--env", "A=1", "--image", "i:1", "--name", "mine", "--", "--epochs", "3")
    planned = [*yaml.safe_load_all(pdj("plan", "train.py", *options, folder=tmp_path).stdout)]
    assert [(one["kind"], one["metadata"]["name"]) for one in planned[:2]] == [
        ("Pod", "mine-worker-0"), ("Pod", "mine-worker-1")
    ]  # fmt: skip
    container = planned[0]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("i:1", ["python", "train.py", "--epochs", "3"])
    here = [*yaml.safe_load_all(pdj("plan", "train.py", "--engine", "local", folder=tmp_path).stdout)]
    assert "image" not in here[0]["spec"]["containers"][0]
    other = pdj("plan", "train.py", "--engine", "slurm", folder=tmp_path)
    assert other.stderr == "pdj: --engine slurm is not an engine; use kubernetes or local\n"


def test_directories_of_an_option_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "d").mkdir()
    assert programs.directories("--volume", ["a=d", "b=~/d"]) == dict.fromkeys("ab", str(tmp_path / "d"))
    for value in ("a", "=d", "a="):
        with pytest.raises(BadInput, match=f"--volume {value} must have the form NAME=DIR"):
            programs.directories("--volume", [value])
    with pytest.raises(BadInput, match="--volume a=x: x is not a directory"):
        programs.directories("--volume", ["a=x"])


def test_variables_claims_and_images_are_checked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HERE", "x")
    assert programs.environment(["A=1=2", "HERE", "B="]) == {"A": "1=2", "HERE": "x", "B": ""}
    for value in ("1A=x", "=x", "A B=x"):
        with pytest.raises(BadInput, match="must have the form NAME=VALUE"):
            programs.environment([value])
    monkeypatch.delenv("ABSENT", raising=False)
    with pytest.raises(BadInput, match="--env ABSENT is not set here; give it a value with --env ABSENT=VALUE"):
        programs.environment(["ABSENT"])
    assert programs.claims(["a", "b=/x"]) == {"a": "", "b": "/x"}
    for value in ("a=x", "A", "a/b"):
        with pytest.raises(BadInput, match="must have the form CLAIM or CLAIM=/PATH"):
            programs.claims([value])
    assert check_image("a/b:1") == "a/b:1" and check_image("") == ""
    with pytest.raises(BadInput, match="is not the name of an image"):
        check_image("a b")


def test_a_dry_run_prints_and_save_keeps_the_job(tmp_path: Path):
    (tmp_path / "train.py").touch()
    done = pdj("run", "train.py", "--workers", "2", "--dry-run", "--save", "kept.yaml", folder=tmp_path)
    assert yaml.safe_load(done.stdout) == yaml.safe_load((tmp_path / "kept.yaml").read_text())
    assert "wrote kept.yaml; run it with `pdj run kept.yaml`" in done.stderr
    assert json.loads(pdj("run", "train.py", "--dry-run", "-o", "json", folder=tmp_path).stdout)["kind"] == "PaddleJob"
    again = pdj("run", "train.py", "--dry-run", "--save", "kept.yaml", folder=tmp_path)
    assert "kept.yaml already exists" in again.stderr


def test_the_target_is_shown_chosen_and_checked(tmp_path: Path):
    own = {"XDG_CONFIG_HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    assert pdj("target", **own).stdout == "this machine\n"
    assert pdj("target", "local", "-n", "team", **own).stdout == "commands now use this machine, namespace team\n"
    assert pdj("target", **own).stdout == "this machine, namespace team\n"
    assert "name the target as well" in pdj("target", "-n", "x", **own).stderr
    assert "this machine has no context" in pdj("target", "local", "--context", "x", **own).stderr
    assert pdj("target", "cluster", **own).returncode != 0
    assert pdj("target", **own).stdout == "this machine, namespace team\n", "a cluster that is not there is not kept"


def test_previous_runs_are_cleaned(tmp_path: Path):
    store = JobStore(tmp_path)
    for _ in range(3):
        store.begin(document(), RunOptions(), NOON)[1].release()
    own = {"PADDLEJOB_STATE": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    assert pdj("clean", "--keep", "1", **own).stdout.startswith("removed 1 previous run, ")
    assert pdj("clean", "mnist", **own).stdout.startswith("removed 1 previous run, ")
    assert pdj("clean", **own).stdout == "No previous runs to remove.\n"
    assert "has no previous runs" in pdj("clean", "absent", **own).stderr
    assert pdj("clean", "../x", **own).returncode == 2


def test_jobs_of_this_machine_are_listed_changed_and_deleted(tmp_path: Path):
    store = JobStore(tmp_path)
    own = {"PADDLEJOB_STATE": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    assert "No jobs found; start one with `pdj run FILE`." in pdj("list", **own).stderr
    assert "No runs found; start one with `pdj run FILE`." in pdj("list", "--history", **own).stderr
    folder, lock = store.begin(document(elastic=1), RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Failed", "attempt": 1, "message": "m", **ENDED}))
    lock.release()
    assert pdj("list", **own).stdout.splitlines()[1].split()[:2] == ["mnist", "Failed"]
    assert json.loads(pdj("list", "--history", "-o", "json", **own).stdout)[0]["run"] == 1
    assert "has ended (Failed) and cannot be changed" in pdj("scale", "mnist", "3", **own).stderr
    (folder.path / "job.json").write_text("{")
    damaged = pdj("list", **own)
    assert "note: mnist: " in damaged.stderr and "Damaged" in damaged.stdout
    assert pdj("delete", "mnist", **own).stdout == "mnist deleted\n"
