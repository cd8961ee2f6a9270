"""Verbs that need neither a cluster nor an engine: new files, conversions, plans, pages, and notes before a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.api.types import Status
from paddlejob.cli.verbs import run as run_verb
from paddlejob.cli.verbs import web as web_verb
from paddlejob.cli.verbs.init import LLM, STARTERS, starter_file
from paddlejob.client.given import Given
from paddlejob.client.prepare import prepare
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import Store
from paddlejob.web.server import Options
from tests.support.builders import NOON, document
from tests.support.called_pdj import pdj

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: first
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: first, context: {cluster: c, user: u}}]
"""


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))


def test_a_new_file_trains_a_program_of_the_user(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/My Train.py").touch()
    done = pdj("init", "collective", "--program", "src/My Train.py", "-o", "job.yaml", folder=tmp_path)
    assert done.stdout == (
        "wrote job.yaml; run it with `pdj run job.yaml`, or on a cluster with `pdj submit job.yaml`\n"
    )
    made = yaml.safe_load((tmp_path / "job.yaml").read_text())
    container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "-m", "paddle.distributed.launch", "src/My Train.py"]
    assert (made["metadata"]["name"], container["image"]) == ("my-train", "my-my-train:v1")
    again = pdj("init", "-o", "job.yaml", folder=tmp_path)
    assert "job.yaml: already exists" in again.stderr
    assert pdj("init", "-o", "job.yaml", "--force", folder=tmp_path).returncode == 0
    assert (
        "x/job.yaml: no such directory: x; create it first" in pdj("init", "-o", "x/job.yaml", folder=tmp_path).stderr
    )
    assert "--program absent.py: no such file" in pdj("init", "--program", "absent.py", folder=tmp_path).stderr
    assert "use `pdj init collective --program`" in pdj("init", "llm", "--program", "x", folder=tmp_path).stderr
    (tmp_path / "deep").mkdir()
    pdj("init", "single", "--program", "src/My Train.py", "-o", "deep/job.yaml", folder=tmp_path)
    made = yaml.safe_load((tmp_path / "deep/job.yaml").read_text())
    assert made["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] == ["python", "../src/My Train.py"]


@pytest.mark.parametrize("mode", STARTERS)
def test_each_new_file_has_the_roles_and_the_image_of_its_example(mode: str):
    made = yaml.safe_load(starter_file(mode, "mine"))
    roles = {role: made["spec"][role]["replicas"] for role in ("ps", "worker", "heter") if role in made["spec"]}
    assert roles == {role: replicas for role, replicas, _ in STARTERS[mode].roles}
    assert made["metadata"]["name"] == "mine"
    assert ("withGloo" in made["spec"]) == (len(roles) > 1)
    assert yaml.safe_load(starter_file(mode))["metadata"]["name"] == STARTERS[mode].name
    for role in roles:
        container = made["spec"][role]["template"]["spec"]["containers"][0]
        assert container["image"] == STARTERS[mode].image
        assert ("command" in container) == bool(STARTERS[mode].command)
    shell = yaml.safe_load(starter_file(mode, program="run.sh"))
    assert shell["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] == ["bash", "run.sh"]
    assert "{name}" in LLM


BATCH = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "old"},
    "spec": {"parallelism": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "t", "image": "i", "env": [{"name": "CONF_PADDLE_PORT", "value": "7164"}]}
    ]}}},
}  # fmt: skip


def test_a_converted_file_keeps_other_objects_and_says_what_was_left_out(tmp_path: Path):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    (tmp_path / "old.yaml").write_text(yaml.safe_dump_all([BATCH, secret]))
    done = pdj("convert", "old.yaml", folder=tmp_path)
    made, kept = yaml.safe_load_all(done.stdout)
    assert (made["kind"], made["spec"]["worker"]["replicas"], kept) == ("PaddleJob", 2, secret)
    assert "# spec.backoffLimit: defaulted to 6 failed pods" in done.stdout
    assert all(line.startswith("note: ") for line in done.stderr.splitlines())
    listed = json.loads(pdj("convert", "old.yaml", "-o", "json", folder=tmp_path).stdout)
    assert [one["kind"] for one in listed["items"]] == ["PaddleJob", "Secret"]
    written = pdj("convert", "old.yaml", "-o", "new.json", folder=tmp_path)
    assert written.stdout == ""
    assert json.loads((tmp_path / "new.json").read_text())["kind"] == "List"
    assert "new.json: already exists" in pdj("convert", "old.yaml", "-o", "new.json", folder=tmp_path).stderr
    both = [BATCH, {**BATCH, "metadata": {"name": "second"}}]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all(both))
    notes = pdj("convert", "two.yaml", folder=tmp_path).stderr
    assert "note: old: spec" in notes and "note: second: spec" in notes
    (tmp_path / "none.yaml").write_text(yaml.safe_dump(secret))
    assert pdj("convert", "none.yaml", folder=tmp_path).stderr.startswith(
        "pdj: none.yaml: v1 Secret: cannot be converted"
    )


def test_a_plan_is_made_for_the_namespace_and_the_engine_of_the_command(tmp_path: Path):
    made = document()
    del made["metadata"]["namespace"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([made, {**made, "metadata": {"name": "two"}}]))
    done = pdj("plan", "job.yaml", "-n", "team", folder=tmp_path)
    planned = [*yaml.safe_load_all(done.stdout)]
    assert {one["metadata"]["namespace"] for one in planned} == {"team"}
    assert [one["kind"] for one in planned] == ["Pod", "Pod", "ConfigMap"] * 2
    assert (
        "10.0.0.1" in done.stdout
        and "127.1.0.2" in pdj("plan", "job.yaml", "--engine", "local", folder=tmp_path).stdout
    )
    assert "use kubernetes or local" in pdj("plan", "job.yaml", "--engine", "x", folder=tmp_path).stderr


def test_validation_names_each_file_and_fails_if_one_is_wrong(tmp_path: Path):
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(document()))
    wrong = document()
    wrong["spec"]["backoffLimit"] = -1
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(wrong))
    done = pdj("validate", "good.yaml", "bad.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "good.yaml: valid (mnist)\n")
    assert done.stderr.startswith("pdj: bad.yaml:")
    reports = json.loads(pdj("validate", "good.yaml", "bad.yaml", "absent", "-o", "json", folder=tmp_path).stdout)
    assert [one["valid"] for one in reports] == [True, False, False]
    assert reports[1]["errors"][0]["line"] and reports[2]["errors"] == [
        {"message": "no such file", "path": "", "line": None}
    ]
    assert pdj("validate", "good.yaml", "-o", "yaml", folder=tmp_path).returncode == 0
    assert pdj("validate", "bad.yaml", "-o", "yaml", folder=tmp_path).returncode == 2


def test_pages_are_served_from_this_machine_and_from_a_cluster_that_is_selected(monkeypatch: pytest.MonkeyPatch):
    served: list[tuple[list[str], Options]] = []

    def serve(sources: Any, options: Options, ready: Any) -> None:
        served.append(([source.name for source in sources], options))
        ready("http://x/?token=t")

    monkeypatch.setattr("paddlejob.web.server.serve", serve)
    done = pdj("web")
    assert (done.stdout, done.stderr) == ("Open http://x/?token=t\nPress Ctrl-C to stop.\n", "")
    pdj("web", "--cluster", "--no-browser", "--read-only", "--port", "7")
    pdj("web", "--context", "first")
    pdj("target", "cluster")
    pdj("web")
    pdj("web", "--local")
    assert [names for names, _ in served] == [
        ["local"], ["local", "cluster"], ["local", "cluster"], ["local", "cluster"], ["local"]
    ]  # fmt: skip
    assert served[0][1] == Options("127.0.0.1", None, browser=True, read_only=False)
    assert served[1][1] == Options("127.0.0.1", 7, browser=False, read_only=True)
    assert "the connection is not encrypted" in pdj("web", "--host", "0.0.0.0").stderr
    assert web_verb._sources("team", False, "")[0].describe().namespace == "team"


def notes(store: Store) -> list[str]:
    machine = Machine("m", 64.0, 256 << 30)
    prepared = prepare(Given(["f"], lambda _: [document()]), RunOptions(), store, machine)
    return run_verb._restart_notes(store, prepared)


def test_a_job_that_starts_over_although_it_could_go_on_is_noted(tmp_path: Path):
    store = Store(tmp_path)
    assert notes(store) == []
    folder, lock = store.begin(document(), RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Running", "attempt": 1}))
    assert notes(store) == [], "it runs, and is refused for that"
    lock.release()
    (note,) = notes(store)
    assert note == "mnist was interrupted and starts over; to continue it instead, use `pdj resume mnist`"
    (folder.path / "run.json").write_text("{")
    assert notes(store)[0].endswith("; mnist starts over")
    folder.write_status(
        Status.model_validate({"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T08:00:00Z"})
    )
    assert notes(store) == []


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_standard_descriptors_that_are_closed_do_not_become_files(closed: tuple[int, ...], tmp_path: Path):
    program = (
        "import os, sys\n"
        "from paddlejob.cli.main import _open_standard_descriptors\n"
        "_open_standard_descriptors()\n"
        "print('x'); print('y', file=sys.stderr)\n"
        f"opened = os.open({str(tmp_path / 'file')!r}, os.O_CREAT | os.O_RDWR)\n"
        "os.write(opened, b'%d' % opened)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        preexec_fn=lambda: [os.close(descriptor) for descriptor in closed],
    )
    assert int((tmp_path / "file").read_text()) > 2
