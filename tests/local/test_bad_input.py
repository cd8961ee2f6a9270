"""Bad input: one clear message, no traceback, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.pdj import Pdj

DOCUMENTS = Path(__file__).parents[2] / "deploy" / "examples"


def rejected(pdj: Pdj, *arguments: str, code: int = 2) -> str:
    done = pdj("run", *arguments)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("pdj: ")
    assert not list(pdj.store.folders()), "a job was written down"
    assert pdj.processes() == []
    return done.stderr


CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "efsvol"}}]}


@pytest.mark.parametrize(
    ("given", "options", "messages"),
    [
        ("kind: PaddleJob\nspec: [1, 2\nx: y\n", [], ["job.yaml:3:2: invalid YAML"]),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", [], ["contains no PaddleJob"]),
        ({"cleanPodPolicy": "Sometimes", "container": {"imag": "x"}}, [], ["cleanPodPolicy", 'did you mean "image"?']),
        ({"command": [""]}, [], ["is empty; write the name of the program"]),
        ({"container": {"resources": {"limits": {"gpu": 1}}}}, [], ["nvidia.com/gpu"]),
        ({}, ["--volume", "claim=/no/such/place"], ["/no/such/place is not a directory"]),
        (
            {"pod": CLAIM},
            ["--volume", "efsvl=."],
            ["--volume efsvl: no volume claim has this name; the job has: efsvol"],
        ),
        ({}, ["--image", "other=."], ["--image other: no container uses this image; the job has: program"]),
        (
            {"container": {"image": ""}},
            ["--image", "other=."],
            ["pdj: --image other: no container uses this image; the job names no image\n"],
        ),
    ],
)
def test_a_job_or_an_option_that_cannot_be_used_is_named(
    pdj: Pdj, given: str | dict[str, Any], options: list[str], messages: list[str]
):
    file = pdj.folder / "job.yaml"
    if isinstance(given, str):
        file.write_text(given)
    else:
        file = Path(pdj.write(**{"command": ["true"], **given}))
    output = rejected(pdj, *options, str(file))
    for message in messages:
        assert message in output


def test_what_is_no_file_and_two_jobs_of_one_name_are_named(pdj: Pdj):
    assert "absent.yaml: no such file" in rejected(pdj, "absent.yaml")
    assert "is a directory" in rejected(pdj, str(pdj.folder))
    file = Path(pdj.write(command=["true"]))
    file.write_text(f"{file.read_text()}---\n{file.read_text()}")
    assert "job job is defined twice; rename one" in rejected(pdj, str(file))
    assert "has no command" in rejected(pdj, pdj.write(), code=1)


def test_the_launcher_with_servers_is_noted_before_the_job_hangs(pdj: Pdj):
    worker = ["sh", "-c", "exit 0; python -m paddle.distributed.launch train.py"]
    done = pdj("run", pdj.write(ps=1, ps_command=["sleep", "600"], worker_command=worker))
    assert done.returncode == 0, done
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert "spec.worker: paddle.distributed.launch waits forever in a job with parameter servers; run the" in warning


def test_several_jobs_in_a_file_all_run(pdj: Pdj):
    files = [Path(pdj.write(name, command=["bash", "-c", f"echo {name}"])) for name in ("one", "two")]
    (pdj.folder / "both.yaml").write_text("---\n".join(file.read_text() for file in files))
    done = pdj("run", "both.yaml")
    assert done.returncode == 0, done.stderr
    assert [pdj.log(name, "worker-0") for name in ("one", "two")] == ["one\n", "two\n"]


def test_a_job_that_can_never_fit_says_so_at_once_and_overcommit_runs_it(pdj: Pdj):
    file = pdj.write(command=["true"], container={"resources": {"requests": {"cpu": "5000"}}})
    output = rejected(pdj, file, code=1)
    assert "insufficient cpu: the job requests 5000" in output
    assert "--overcommit" in output
    assert pdj("run", "--overcommit", file).returncode == 0


@pytest.mark.skipif(bool(list(Path("/dev").glob("nvidia[0-9]*"))), reason="this machine has GPUs")
def test_a_job_for_gpus_is_rejected_where_there_are_none_and_the_flag_is_named(pdj: Pdj):
    output = rejected(pdj, str(DOCUMENTS / "wide_and_deep_gpu.yaml"), code=1)
    assert "insufficient nvidia.com/gpu: the job requests 4 and this machine has none" in output
    assert "accelerator=nvidia-tesla-p100" in output
    assert "--cpu" in output


def test_a_python_without_paddle(pdj: Pdj):
    base = str(Path(sys.base_prefix) / "bin" / "python3")
    if subprocess.run([base, "-c", "import paddle"], capture_output=True).returncode == 0:
        pytest.skip("the base Python has paddle too")
    output = rejected(pdj, "--python", base, str(DOCUMENTS / "wide_and_deep.yaml"), code=1)
    assert "PaddlePaddle is not installed" in output


def test_a_job_that_is_not_there(pdj: Pdj):
    for verb in (["get"], ["logs"], ["why"], ["delete"], ["suspend"], ["resume"]):
        done = pdj(*verb, "absent")
        assert done.returncode == 2
        assert "job absent not found" in done.stderr
    assert "job absent not found" in pdj("scale", "absent", "3").stderr


def test_a_job_that_is_not_elastic_is_not_scaled(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sleep", "300"], workers=2))
    pdj.until("job", phase="Running")
    done = pdj("scale", "job", "3")
    assert done.returncode == 2
    assert "elastic" in done.stderr
    assert "worker" in pdj("logs", "job", "--role", "nurse").stderr


def test_an_own_image_with_the_name_of_an_example_runs_the_users_program(pdj: Pdj):
    (pdj.folder / "train.py").write_text("print('my own')")
    own = {"image": "registry.mycompany.com/team-a/mnist:v3"}
    done = pdj("run", pdj.write(command=["python", "train.py"], container=own))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "my own\n"


OUTSIDE = "../../../../../../../../../.."


def precious(pdj: Pdj) -> Path:
    """A directory of the user that a store key with dots in it would reach."""
    file = pdj.folder / "project" / "thesis.txt"
    file.parent.mkdir()
    file.write_text("three years of work")
    return file


def test_a_namespace_that_leads_out_of_the_store_removes_nothing(pdj: Pdj):
    thesis = precious(pdj)
    for namespace in ("../..", OUTSIDE + str(pdj.folder)):
        file = Path(pdj.write("project", command=["true"]))
        file.write_text(file.read_text().replace("name: project", f"name: project\n  namespace: {namespace}", 1))
        assert "metadata.namespace" in rejected(pdj, str(file))
        assert "metadata.namespace" in pdj("validate", str(file)).stderr
    assert thesis.read_text() == "three years of work"


def test_a_name_on_the_command_line_that_leads_out_of_the_store_is_one_message(pdj: Pdj):
    thesis = precious(pdj)
    file = pdj.write("project", command=["true"])
    bad = "pdj: --namespace ../.. is not a valid namespace"
    for arguments, message in (
        (("run", file, "-n", "../.."), bad),
        (("delete", "project", "-n", "../.."), bad),
        (("get", "../../../project"), "not a valid job name"),
        (("delete", "../../../project"), "not a valid job name"),
    ):
        done = pdj(*arguments)
        assert done.returncode == 2, done
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert thesis.exists()


def test_no_name_in_a_template_leads_out_of_the_directories_of_a_job(pdj: Pdj):
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: evil}\n"
    volumes = {
        "a volume": {"name": "../../../../../evil", "emptyDir": {}},
        "a claim": {"name": "v", "persistentVolumeClaim": {"claimName": "../../../evil"}},
        "a file": {"name": "v", "configMap": {"name": "settings", "items": [{"key": "a", "path": "../../../../x"}]}},
        "a hostPath": {"name": "v", "hostPath": {"path": "/no/such/../../../evil"}},
    }
    for what, volume in volumes.items():
        file = Path(pdj.write("job", command=["true"], pod={"volumes": [volume]}))
        file.write_text(f"{file.read_text()}---\n{config}")
        expected = "hostPath" if what == "a hostPath" else "volume"
        assert expected in rejected(pdj, str(file)), what
    file = pdj.write("job", command=["true"], container={"name": "../../../../evil"})
    assert "container" in rejected(pdj, file)
    assert not list(pdj.folder.rglob("evil*"))


def test_a_run_that_fails_to_start_keeps_the_previous_job_of_its_name(pdj: Pdj):
    assert pdj("run", pdj.write("job", command=["echo", "first"])).returncode == 0
    assert pdj("run", pdj.write("job", command=[""])).returncode == 2
    assert "first" in pdj("logs", "job").stdout
