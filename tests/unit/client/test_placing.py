"""Placing checked jobs on this machine: their directory, objects, options and notes; then storing their runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import paddlejob as pj
from paddlejob.api.program import python_file
from paddlejob.api.types import Status
from paddlejob.client.settings import settings_file
from paddlejob.client.start.begin import begin
from paddlejob.client.start.check import check
from paddlejob.client.start.load import Loaded, load_file
from paddlejob.client.start.on_machine import Placed, place
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.history import History
from paddlejob.local.state.store import JobStore
from tests.support.builders import NOON, document

MACHINE = Machine("here", cpus=64.0, memory=256 << 30)
USED = ("ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim")
IGNORED = ("PodGroup", "Namespace", "Service", "ServiceAccount", "Role", "RoleBinding", "Queue", "StorageClass")
Object = dict[str, Any]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_job(name: str = "mnist", container: Object | None = None, **pod: Any) -> Object:
    made = document(name)
    made["metadata"]["namespace"] = "default"
    made["spec"]["worker"]["template"]["spec"] |= pod
    made["spec"]["worker"]["template"]["spec"]["containers"][0] |= container or {}
    return made


def an(kind: str) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "one"}}


def placed(*objects: Object, options: RunOptions | None = None, program: str = "", **more: Any) -> Placed:
    loaded = Loaded("job.yaml", objects, str(Path.cwd()), python_file(program) if program else None)
    (one,) = place(check([loaded], cluster=None), options or RunOptions(), JobStore(), MACHINE, **more)
    return one


def test_the_objects_beside_a_job_are_used_or_noted_and_others_are_rejected(home: Path):
    one = placed(*(an(kind) for kind in (*USED, *IGNORED)), a_job())
    assert [other["kind"] for other in one.options.objects] == list(USED)
    assert f"not used on a single machine: {', '.join(f'{kind} one' for kind in IGNORED)}" in one.notes
    with pytest.raises(BadInput, match=r"job\.yaml: a Deployment cannot run on this machine; remove it"):
        placed(an("Deployment"), a_job())


def test_a_job_runs_in_the_directory_of_its_file(home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / "jobs").mkdir()
    (home / "jobs" / "job.yaml").write_text("kind: PaddleJob")
    assert load_file("jobs/job.yaml").directory == str(home / "jobs")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: PaddleJob")))
    assert load_file("-").directory == str(home)
    assert placed(a_job()).options.folder == str(home)


def test_options_change_a_copy_of_the_job():
    made = a_job()
    assert placed(made, no_restart=True).job.spec.backoffLimit == 0
    assert made == a_job()


def test_with_cpu_what_asks_for_a_gpu_is_ignored_and_noted():
    wants = a_job(container={"resources": {"limits": {"nvidia.com/gpu": 2}}})
    with pytest.raises(NotPossible, match=r"job\.yaml: job mnist: .*nvidia\.com/gpu"):
        placed(wants)
    assert "ignored because of --cpu: worker: nvidia.com/gpu 2" in placed(wants, cpu=True).notes


def test_remedies_name_the_arguments_of_python_there():
    wants = a_job(container={"command": ["true"], "resources": {"limits": {"nvidia.com/gpu": 99}}})
    with pytest.raises(NotPossible, match="train on the CPU with cpu=True"):
        pj.run(pj.Job(wants))
    huge = a_job(container={"command": ["true"], "resources": {"requests": {"cpu": "9999"}}})
    with pytest.raises(NotPossible, match="or run it anyway with overcommit=True"):
        pj.run(pj.Job(huge), cpu=True)


def test_a_program_needs_no_image_and_gets_no_note_about_it():
    bare = a_job(container={"command": ["true"], "image": ""})

    def noted(notes: Iterable[str]) -> bool:
        return any(note.startswith("The job names no image") for note in notes)

    assert noted(placed(bare).notes)
    assert not noted(placed(bare, program="train.py").notes)


def test_options_that_name_nothing_in_the_job_are_rejected_with_what_there_is(home: Path):
    here = str(home)
    claim = a_job(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    init = a_job(initContainers=[{"name": "i", "image": "mine", "command": ["true"]}])
    image = RunOptions(images={"mine": {"directory": here}})
    for made, options, message in (
        (claim, RunOptions(volumes={"date": here}), "volumes date: no volume claim has this name; the job has: data"),
        (a_job(), RunOptions(volumes={"date": here}), "volumes date: .* the job has no volume to map"),
        (a_job(), image, "images mine: no container uses this image; the job has: registry"),
    ):
        with pytest.raises(BadInput, match=message):
            placed(made, options=options)
    assert placed(claim, options=RunOptions(volumes={"data": here}))
    assert placed(a_job(), options=RunOptions(volumes={"/any": here}))
    assert placed(init, options=image)


def test_a_mapping_of_images_beside_the_job_gives_way_to_the_option(home: Path):
    (home / "paddlejob-images.yaml").write_text("mine: a\nother: b\n")
    mine = a_job(container={"image": "mine:1", "command": ["true"]})
    one = placed(mine, options=RunOptions(images={"mine:1": {"directory": str(home)}}))
    assert one.options.images["mine:1"]["directory"] == str(home)
    assert one.options.images["other"]["directory"] == str(home / "b")


def starts_over() -> list[str]:
    return [note for note in placed(a_job()).notes if "starts over" in note]


def test_a_job_that_starts_over_although_it_could_go_on_is_noted(home: Path):
    store = JobStore()
    assert starts_over() == []
    folder, lock = store.begin(a_job(), RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Running", "attempt": 1}))
    assert starts_over() == [], "it runs, and is refused for that"
    lock.release()
    (note,) = starts_over()
    assert note == "mnist was interrupted and starts over; to continue it instead, use `pdj resume mnist`"
    (folder.path / "run.json").write_text("{")
    assert starts_over()[0].endswith("; mnist starts over")
    folder.write_status(
        Status.model_validate({"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T08:00:00Z"})
    )
    assert starts_over() == []


def test_either_all_jobs_of_a_run_are_stored_or_none(home: Path):
    store = JobStore()
    first, notes = begin(store, [(a_job("one"), RunOptions()), (a_job("two"), RunOptions())])
    assert ([folder.key[1] for folder, _ in first], notes) == (["one", "two"], [])
    with pytest.raises(BadInput, match="two"):
        begin(store, [(a_job("three"), RunOptions()), (a_job("two"), RunOptions())])
    assert not store.folder(("default", "three")).path.exists()
    assert store.folder(("default", "two")).path.exists()
    for _, lock in first:
        lock.release()


def test_logs_that_are_too_large_to_keep_are_removed_with_a_note(home: Path):
    store = JobStore()
    settings_file().parent.mkdir(parents=True)

    def again(settings: str = "") -> list[str]:
        settings_file().write_text(settings)
        ((folder, lock),), notes = begin(store, [(a_job("one"), RunOptions())])
        (folder.path / "logs").mkdir(exist_ok=True)
        (folder.path / "logs" / "large").write_bytes(b"x" * 5000)
        lock.release()
        return notes

    assert again() == again() == []
    (note,) = again("keep_runs_size = '3Ki'")
    assert note.startswith("the logs of the last run of one (")
    assert note.endswith(f"keep at most 3.0Ki; to keep more, set `keep_runs_size` in {settings_file()}")
    assert again("keep_runs = 0") == [], "as the user wanted it"
    assert again() == []
    assert again("keep_runs_size = '40Ki'") == [], "the last run is kept"
    assert [run.number for run in History(store.root, ("default", "one")).runs()] == [5]
