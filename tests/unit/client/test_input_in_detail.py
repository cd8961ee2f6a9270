"""Files, settings, programs and options that a user gives, and what is made of them before a job runs."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.api.program import python_file
from paddlejob.client import begin as begin_module
from paddlejob.client.begin import begin
from paddlejob.client.file_check import LARGE_JOB, check_objects
from paddlejob.client.files import check_new_file, is_paddle_job, jobs_in, objects_in, write_file
from paddlejob.client.given import Given
from paddlejob.client.interpreters import CONDA_ROOTS, find_interpreter
from paddlejob.client.planned import planned_objects
from paddlejob.client.prepare import IGNORED, USED, pairs, prepare
from paddlejob.client.series import Row, SeriesReader
from paddlejob.client.settings import Settings, default_image, read_settings, settings_file
from paddlejob.client.targets.remembered import Remembered, read_remembered, remember, target_file
from paddlejob.client.targets.selection import is_plugin, selects_cluster
from paddlejob.client.targets.target import LogLine
from paddlejob.errors import BadFile, BadInput, InvalidJob, NotPossible
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.history import History
from paddlejob.local.state.store import Store
from paddlejob.progress import Sample
from tests.support.builders import document, job

MACHINE = Machine("here", cpus=64.0, memory=256 << 30)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CONDA_EXE", "MAMBA_ROOT_PREFIX", "CONDA_ENVS_PATH", "CONDA_ENVS_DIRS", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem(name: str) -> str:
    with pytest.raises(BadFile) as raised:
        objects_in(name)
    return raised.value.problem


def test_a_directory_is_answered_with_the_job_file_or_the_program_in_it(home: Path):
    (home / "d").mkdir()
    assert problem("d") == "is a directory without a job file; create one with `pdj init -o d/job.yaml`"
    (home / "d" / "other.py").touch()
    assert "train it with `pdj run d/other.py`; --save writes a job file" in problem("d")
    (home / "d" / "main.py").touch()
    assert "`pdj run d/main.py`" in problem("d")
    (home / "d" / "train.py").touch()
    assert "`pdj run d/train.py`" in problem("d")
    (home / "d" / "b.yml").touch()
    assert problem("d") == "is a directory; name a job file, such as d/b.yml"
    (home / "d" / "a.yaml").touch()
    assert problem("d").endswith("such as d/a.yaml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "is a Python program, not a job file; train it with `pdj run a.py`"),
        ("a.sh", "is a shell script, not a job file"),
        ("a.ipynb", "is a notebook, not a job file; save the notebook as a Python program first"),
        ("absent.yaml", "no such file"),
        ("", "no such file"),
    ],
)
def test_what_is_no_job_file_is_answered_with_what_to_do(home: Path, name: str, text: str):
    if name.startswith("a."):
        (home / name).touch()
    assert text in problem(name)


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: PaddleJob\n---\nkind: Secret\n")))
    assert [one["kind"] for one in objects_in("-")] == ["PaddleJob", "Secret"]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadFile):
        objects_in("-")


def test_a_file_without_a_job_says_what_it_holds_and_what_to_do():
    def answer(*kinds: str) -> str:
        with pytest.raises(BadFile) as raised:
            jobs_in("f", [{"kind": kind} for kind in kinds])
        return raised.value.problem

    assert answer("Secret", "Secret", "") == (
        "contains no PaddleJob, only Secret, an object without kind; check kind and apiVersion, or create a job file "
        "with `pdj init`"
    )
    assert answer("Job").endswith("run it with `pdj run` or kubectl, or turn it into a PaddleJob with `pdj convert`")
    assert answer("Paddlejob").endswith("did you mean kind: PaddleJob?")
    assert jobs_in("f", [{"kind": "PaddleJob"}, {"kind": "Secret"}]) == [{"kind": "PaddleJob"}]
    assert not is_paddle_job({})


def test_a_file_is_only_overwritten_on_request(home: Path):
    assert check_new_file("new", force=False) == Path("new")
    (home / "old").touch()
    assert check_new_file("old", force=True) == Path("old")
    with pytest.raises(BadInput, match="old: already exists; choose another name or overwrite it with --force"):
        check_new_file("old", force=False)
    write_file(Path("new"), "名")
    assert (home / "new").read_bytes() == "名".encode()
    with pytest.raises(NotPossible, match="absent/new: cannot be written: No such file or directory"):
        write_file(Path("absent/new"), "")


def settings(text: str) -> Settings:
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(text)
    return read_settings()


def test_settings_have_defaults_and_lie_where_a_user_keeps_settings(home: Path, monkeypatch: pytest.MonkeyPatch):
    assert settings_file() == home / ".config/paddlejob/config.toml"
    assert (read_settings(), read_settings().most_bytes) == (Settings("", "", 10, "2Gi"), 2 << 30)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "x"))
    assert settings_file() == home / "x/paddlejob/config.toml"
    assert settings('image = "a"\ngpu_image = "b"\nkeep_runs = 0\nkeep_runs_size = "5Mi"') == Settings(
        "a", "b", 0, "5Mi"
    )
    for unit, size in (("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40)):
        assert settings(f'keep_runs_size = "3{unit}"').most_bytes == 3 * size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imag = 1", "imag: is not a setting; known are image, gpu_image, keep_runs, keep_runs_size"),
        ("image = 1", "image: must be text in quotes"),
        ("keep_runs = -1", "keep_runs: must be a number, 0 or more"),
        ("keep_runs = true", "keep_runs: must be a number, 0 or more"),
        ('keep_runs = "1"', "keep_runs: must be a number, 0 or more"),
        ('keep_runs_size = "2G"', "keep_runs_size: must be a size, such as '2Gi' or '500Mi'"),
        ("x", "cannot be read: "),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_how_to_write_it(text: str, message: str):
    with pytest.raises(BadInput, match=message):
        settings(text)


def test_the_image_of_a_program_is_that_of_the_settings_else_the_paddle_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("paddlejob.client.settings.paddle_version", lambda: "3.9.9")
    assert default_image(0) == "paddlepaddle/paddle:3.9.9"
    with pytest.raises(BadInput, match=r"--image: is missing; .* set `gpu_image` in"):
        default_image(1)
    settings('image = "cpu:1"\ngpu_image = "gpu:1"')
    assert (default_image(0), default_image(2)) == ("cpu:1", "gpu:1")
    settings("")
    monkeypatch.setattr("paddlejob.client.settings.paddle_version", lambda: "")
    with pytest.raises(BadInput, match="set `image` in"):
        default_image(0)


def test_the_remembered_target_reads_as_people_say_it(home: Path):
    assert str(Remembered()) == "this machine"
    assert str(Remembered(namespace="team")) == "this machine, namespace team"
    assert str(Remembered(cluster=True)) == "cluster (the current kubeconfig context)"
    assert str(Remembered(True, "west", "team")) == "cluster (context west), namespace team"
    assert read_remembered() == Remembered()
    remember(Remembered(True, "west", "team"))
    assert read_remembered() == Remembered(True, "west", "team")
    assert target_file() == home / ".config/paddlejob/target.json"
    assert [one.name for one in target_file().parent.iterdir()] == ["target.json"]
    (home / ".config/paddlejob/target.json").unlink()
    (home / ".config/paddlejob").rmdir()
    (home / ".config/paddlejob").touch()
    with pytest.raises(NotPossible, match=r"target\.json: cannot be written: "):
        remember(Remembered())


def test_kubectl_as_a_plugin_always_means_the_cluster(monkeypatch: pytest.MonkeyPatch):
    assert (selects_cluster(None, ""), selects_cluster(True, ""), selects_cluster(False, "")) == (None, True, False)
    assert selects_cluster(None, "west") is True
    for name in ("kubectl-pdj", "kubectl-pdj.exe"):
        monkeypatch.setattr(sys, "argv", [f"/bin/{name}"])
        assert is_plugin() and selects_cluster(None, "") is True
    monkeypatch.setattr(sys, "argv", ["/bin/pdj"])
    assert not is_plugin()


def python(environment: Path, name: str = "python") -> str:
    path = environment / "bin" / name
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("root", CONDA_ROOTS)
def test_each_relative_of_conda_is_found_in_the_home_directory(home: Path, root: str):
    base, paddle = python(home / root), python(home / root / "envs" / "paddle")
    assert (find_interpreter("base"), find_interpreter("paddle")) == (base, paddle)
    assert set(CONDA_ROOTS) == {"miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba"}


def test_environments_are_found_where_conda_was_told_to_keep_them(home: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = python(home / "a" / "one"), python(home / "b" / "two")
    monkeypatch.setenv("CONDA_ENVS_PATH", f"{home / 'absent'}{os.pathsep}{os.pathsep}{home / 'a'}")
    monkeypatch.setenv("CONDA_ENVS_DIRS", str(home / "b"))
    assert (find_interpreter("one"), find_interpreter("two")) == (one, two)
    three = python(home / ".conda" / "envs" / "three")
    root = python(home / "mamba")
    monkeypatch.setenv("MAMBA_ROOT_PREFIX", str(home / "mamba"))
    assert (find_interpreter("three"), find_interpreter("base")) == (three, root)
    (home / "a" / "file").touch()
    assert python(home / "miniconda3" / "envs" / "one") and find_interpreter("one") == one, "the first of a name counts"


def test_a_program_that_is_no_python_is_only_run_by_its_path(home: Path):
    own = python(home / "own", "trainer")
    assert find_interpreter(own) == own
    assert find_interpreter("./own/bin/trainer") == "./own/bin/trainer"
    assert find_interpreter("env") != "" and Path(find_interpreter("env")).name == "env"


def test_of_several_pythons_of_uv_the_newest_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch):
    pythons = [python(home / f"uv/cpython-3.99.{number}-linux", "python3") for number in (1, 2)]
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(home / "uv"))
    assert (find_interpreter("3.99"), find_interpreter("3.99.1")) == (pythons[1], pythons[0])
    monkeypatch.delenv("UV_PYTHON_INSTALL_DIR")
    found = python(home / "data/uv/python/cpython-3.98.1-linux", "python3")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert find_interpreter("3.98") == found
    (home / "uv/cpython-3.99.2-linux/bin/python3").unlink()
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(home / "uv"))
    assert find_interpreter("3.99") == pythons[0]
    on_path = python(home / "on-path", "python3.97")
    monkeypatch.setenv("PATH", str(home / "on-path" / "bin"), prepend=os.pathsep)
    assert find_interpreter("3.97") == on_path
    for text in ("3.x", "13.9", "3.97-"):
        with pytest.raises(BadInput, match="no such program, directory or environment"):
            find_interpreter(text)


def a_job(name: str = "mnist", namespace: str = "", **spec: Any) -> dict[str, Any]:
    made = document(name, **spec)
    made["metadata"] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return made


def an(kind: str, name: str = "one") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def test_findings_about_a_file_name_its_jobs_and_say_whether_it_is_valid():
    good = check_objects("f", [a_job(), an("Secret")])
    assert (good.valid, good.jobs, good.errors, good.warnings) == (True, ["mnist"], [], [])
    twice = check_objects("f", [a_job(), a_job(namespace="default")])
    assert (twice.valid, twice.lines(twice.errors)) == (False, ["f: two jobs are named mnist; rename one"])
    assert check_objects("f", [a_job(), a_job(namespace="team")]).valid
    nameless = check_objects("f", [{"kind": "PaddleJob", "apiVersion": "batch.paddlepaddle.org/v1", "spec": {}}])
    assert not nameless.valid
    secret = {**an("Secret"), "data": {"a": "?"}}
    (found,) = check_objects("f", [a_job(), secret]).errors
    assert (found.path, found.line) == ("data.a", None)


def test_what_only_concerns_a_cluster_is_a_warning_there():
    without_image = a_job()
    del without_image["spec"]["worker"]["template"]["spec"]["containers"][0]["image"]
    assert [one.path for one in check_objects("f", [without_image]).warnings] == [
        "spec.worker.template.spec.containers[0].image"
    ]
    assert check_objects("f", [without_image], cluster=False).warnings == []
    odd = a_job()
    odd["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["python train.py"]
    for cluster in (True, False):
        assert len(check_objects("f", [odd], cluster).warnings) == 1
    launched = a_job(ps=1)
    launched["spec"]["ps"]["template"]["spec"]["containers"][0]["command"] = ["fleetrun", "train.py"]
    (found,) = check_objects("f", [launched]).warnings
    assert str(found).startswith("spec.ps: fleetrun waits forever")


def test_the_keys_that_a_job_refers_to_are_looked_for_in_its_file():
    refers = a_job()
    refers["spec"]["worker"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "one", "key": "b"}}}
    ]
    assert check_objects("f", [refers]).valid, "it may be in the cluster"
    (found,) = check_objects("f", [refers, {**an("Secret"), "stringData": {"a": "x"}}]).errors
    assert "valueFrom.secretKeyRef.key" in found.path
    broken = {**refers, "metadata": {"name": "Bad_Name"}}
    assert len(check_objects("f", [broken, {**an("Secret"), "stringData": {}}]).errors) == 1


def test_a_job_whose_environment_fits_into_no_config_map_is_an_error(monkeypatch: pytest.MonkeyPatch):
    assert check_objects("f", [a_job(workers=LARGE_JOB)]).valid
    (found,) = check_objects("f", [a_job(workers=10_000)]).errors
    assert str(found).startswith("job mnist: ")
    monkeypatch.setattr("paddlejob.plan.objects.environment.too_large", lambda job: "too large")
    assert check_objects("f", [a_job(workers=LARGE_JOB - 1)]).valid
    assert not check_objects("f", [a_job(workers=LARGE_JOB)]).valid


def prepared(*objects: dict[str, Any], name: str = "job.yaml", options: Any = None, **more: Any) -> Any:
    given = Given([name], lambda _: yaml.safe_load(yaml.safe_dump(list(objects))))
    return prepare(given, options or RunOptions(), Store(), MACHINE, **more)


def test_the_objects_beside_a_job_are_used_or_noted_and_others_are_rejected(home: Path):
    (one,) = prepared(*(an(kind) for kind in (*USED, *IGNORED)), a_job())
    assert [other["kind"] for other in one.options.objects] == list(USED)
    assert one.options.folder == str(home)
    (note,) = [note for note in one.notes if note.startswith("not used on a single machine: ")]
    assert note == "not used on a single machine: " + ", ".join(f"{kind} one" for kind in IGNORED)
    assert set(USED) == {"ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim"}
    assert set(IGNORED) == {
        "PodGroup", "Namespace", "Service", "ServiceAccount", "Role", "RoleBinding", "Queue", "StorageClass"
    }  # fmt: skip
    with pytest.raises(BadInput, match=r"job\.yaml: cannot run a Deployment on this machine; remove it"):
        prepared(an("Deployment"), a_job())


def test_a_job_runs_in_the_directory_of_its_file_unless_another_is_given(home: Path):
    (home / "jobs").mkdir()
    assert prepared(a_job(), name="jobs/job.yaml")[0].options.folder == str(home / "jobs")
    assert prepared(a_job(), name="-")[0].options.folder == str(home)
    assert prepared(a_job(), options=RunOptions(folder="jobs"))[0].options.folder == str(home / "jobs")


def test_a_batch_job_and_the_options_of_the_command_are_applied():
    (one,) = prepared(a_job(), namespace="team", no_restart=True)
    assert (one.job.namespace, one.job.spec.backoffLimit) == ("team", 0)
    assert prepared(a_job())[0].job.namespace == "default"
    with pytest.raises(BadInput, match=r"the job is in namespace own, not team; change metadata\.namespace or -n"):
        prepared(a_job(namespace="own"), namespace="team")
    with pytest.raises(BadInput, match="two jobs are named mnist; rename one, or run the files one after the other"):
        given = Given(["a", "b"], lambda _: [a_job()])
        prepare(given, RunOptions(), Store(), MACHINE)
    with pytest.raises(InvalidJob) as raised:
        prepare(Given(["a", "b"], lambda _: [a_job("Bad_Name")]), RunOptions(), Store(), MACHINE)
    assert len(raised.value.faults) == 2


def test_with_cpu_what_asks_for_a_gpu_is_ignored_and_noted():
    wants = a_job()
    wants["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2}}
    with pytest.raises(NotPossible, match=r"job\.yaml: job mnist: .*nvidia\.com/gpu"):
        prepared(wants)
    (one,) = prepared(wants, cpu=True)
    assert "ignored because of --cpu: worker: nvidia.com/gpu 2" in one.notes


def test_what_the_checks_of_this_machine_note_is_kept_but_for_the_missing_image_of_a_program():
    bare = a_job()
    del bare["spec"]["worker"]["template"]["spec"]["containers"][0]["image"]
    bare["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["true"]
    assert any(note.startswith("The job names no image") for note in prepared(bare)[0].notes)
    given = Given(["train.py"], lambda _: [bare], python_file("train.py"))
    (one,) = prepare(given, RunOptions(), Store(), MACHINE)
    assert not any(note.startswith("The job names no image") for note in one.notes)


def test_options_that_name_nothing_in_the_job_are_rejected_with_what_there_is(home: Path):
    (home / "data").mkdir()
    claim = a_job()
    claim["spec"]["worker"]["template"]["spec"]["volumes"] = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    ]

    def options(**volumes: str) -> RunOptions:
        return RunOptions(volumes=volumes)

    with pytest.raises(BadInput, match="--volume date: no volume claim has this name; the job has: data"):
        prepared(claim, options=options(date=str(home / "data")))
    with pytest.raises(BadInput, match=r"--volume date: .* the job has no volume to map"):
        prepared(a_job(), options=options(date=str(home / "data")))
    assert prepared(claim, options=options(data=str(home / "data")))
    assert prepared(a_job(), options=RunOptions(volumes={"/any": str(home / "data")}))
    image = {"mine": {"directory": str(home)}}
    with pytest.raises(BadInput, match="--image mine: no container uses this image; the job has: registry"):
        prepared(a_job(), options=RunOptions(images=image))
    init = a_job()
    init["spec"]["worker"]["template"]["spec"]["initContainers"] = [{"name": "i", "image": "mine", "command": ["true"]}]
    assert prepared(init, options=RunOptions(images=image))


def test_a_mapping_of_images_beside_the_job_gives_way_to_the_option(home: Path):
    (home / "paddlejob-images.yaml").write_text("mine: a\nother: b\n")
    mine = a_job()
    mine["spec"]["worker"]["template"]["spec"]["containers"][0] |= {"image": "mine:1", "command": ["true"]}
    (one,) = prepared(mine, options=RunOptions(images={"mine:1": {"directory": str(home)}}))
    assert one.options.images["mine:1"]["directory"] == str(home)
    assert one.options.images["other"]["directory"] == str(home / "b")


def test_pairs_of_an_option_are_directories_that_exist(home: Path):
    (home / "d").mkdir()
    assert pairs("--volume", ["a=d", "b=~/d", "c=d"]) == dict.fromkeys("abc", str(home / "d"))
    for value in ("a", "=d", "a="):
        with pytest.raises(BadInput, match="--volume"):
            pairs("--volume", [value])
    with pytest.raises(BadInput, match="--volume a=x: x is not a directory"):
        pairs("--volume", ["a=x"])


def test_either_all_jobs_of_a_run_are_stored_or_none(home: Path):
    store = Store()
    first, running = begin(store, [(a_job("one", "default"), RunOptions()), (a_job("two", "default"), RunOptions())])
    assert ([folder.key[1] for folder, _ in first], running) == (["one", "two"], [])
    with pytest.raises(BadInput, match="two"):
        begin(store, [(a_job("three", "default"), RunOptions()), (a_job("two", "default"), RunOptions())])
    assert not store.folder(("default", "three")).path.exists()
    assert store.folder(("default", "two")).path.exists()
    for _, lock in first:
        lock.release()


def test_logs_that_are_too_large_to_keep_are_removed_with_a_note(home: Path, monkeypatch: pytest.MonkeyPatch):
    store = Store()

    def again(**limits: Any) -> list[str]:
        monkeypatch.setattr(begin_module, "read_settings", lambda: Settings(**limits))
        ((folder, lock),), notes = begin(store, [(a_job("one", "default"), RunOptions())])
        (folder.path / "logs").mkdir(exist_ok=True)
        (folder.path / "logs" / "large").write_bytes(b"x" * 5000)
        lock.release()
        return notes

    assert again() == again() == []
    (note,) = again(keep_runs_size="3Ki")
    assert note.startswith("the logs of the last run of one (")
    assert note.endswith(f"keep at most 3.0Ki; to keep more, set `keep_runs_size` in {settings_file()}")
    assert again(keep_runs=0) == [], "as the user wanted it"
    assert again() == []
    assert again(keep_runs_size="40Ki") == [], "the last run is kept"
    assert [run.number for run in History(store.root, ("default", "one")).runs()] == [5]


def test_a_default_namespace_is_only_given_to_jobs_that_set_none():
    given = Given(["f"], lambda _: [a_job(), a_job("other", "own"), an("Secret"), {"kind": "PaddleJob"}])
    loaded = given.in_namespace("team").load("f")
    assert [(one.get("metadata") or {}).get("namespace") for one in loaded] == ["team", "own", None, None]
    assert given.in_namespace("") is given


def test_a_plan_shows_what_each_engine_would_create():
    found = planned_objects(job(ps=1, workers=1, intranet="Service"), "kubernetes")
    assert [one["kind"] for one in found] == [
        "Service", "Pod", "Pod", "ConfigMap", "Service", "Service"
    ]  # fmt: skip
    named = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert len(set(named)) == len(named), "each object is shown once"
    assert ("ConfigMap", "mnist-env-uid-o-1") in named
    local = planned_objects(job(ps=1, workers=260), "local")[-1]["data"]
    assert any("127.1.0.2" in value for value in local.values())
    assert any("127.1.1.2" in value for value in local.values())
    pods = planned_objects(job(workers=260), "kubernetes")[-1]["data"]
    assert any("10.0.0.1:" in value and "10.0.1.1:" in value for value in pods.values())
    gang = planned_objects(job(schedulingPolicy={"minAvailable": 2}), "kubernetes")
    assert gang[0]["kind"] == "PodGroup"
    queued = job(labels={"kueue.x-k8s.io/queue-name": "q"})
    assert planned_objects(queued, "kubernetes")[0]["kind"] == "Workload"
    assert planned_objects(queued, "local")[0]["kind"] == "Pod"
    with pytest.raises(BadInput, match="job mnist: "):
        planned_objects(job(workers=10_000), "kubernetes")


def test_a_row_has_a_cell_for_each_column():
    sample = Sample(step=3, total_steps=9, metrics={"loss": 0.5}, non_finite={"accuracy": "nan"})
    row = Row(LogLine(2, "text", 1800000000.0), sample)
    names = ("time", "attempt", "step", "total_steps", "epoch", "loss", "accuracy", "other")
    assert [row.cell(name) for name in names] == ["2027-01-15T08:00:00Z", 2, 3, 9, None, 0.5, "nan", None]
    assert Row(LogLine(1, "text"), sample).cell("time") is None


def test_the_columns_are_known_before_the_first_row():
    common = ["time", "attempt", "step", "total_steps", "epoch", "total_epochs", "checkpoint"]
    assert SeriesReader(None).names == [*common, "loss", "learning_rate", "samples_per_second"]
    spec = job(progress={"metrics": ["auc", "loss"]}).spec.progress
    assert SeriesReader(spec).names == [*common, "loss", "learning_rate", "samples_per_second", "auc"]
    pattern = job(progress={"pattern": r"at (?P<step>\d+): (?P<cost>\S+)"}).spec.progress
    assert SeriesReader(pattern).names == [*common, "cost"]


def test_rows_are_lines_that_tell_something_and_each_attempt_counts_for_itself():
    reader = SeriesReader(None)
    lines = ["step 1/4 loss 2.0", "hello", "step 2/4 loss nan"]
    rows = list(reader.rows(LogLine(attempt, line) for attempt in (1, 2) for line in lines))
    assert [(row.line.attempt, row.sample.step) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert reader.lines == 6
    assert rows[1].cell("loss") == "nan"
