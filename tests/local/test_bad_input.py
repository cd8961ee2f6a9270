"""Bad input: one clear message, no traceback, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_a_missing_file(pdj: Pdj):
    assert "absent.yaml: no such file" in rejected(pdj, "absent.yaml")


def test_a_directory(pdj: Pdj):
    assert "is a directory" in rejected(pdj, str(pdj.folder))


def test_yaml_that_does_not_parse_is_shown_by_line_and_column(pdj: Pdj):
    (pdj.folder / "bad.yaml").write_text("kind: PaddleJob\nspec: [1, 2\nx: y\n")
    assert "bad.yaml:3:2: invalid YAML" in rejected(pdj, "bad.yaml")


def test_a_file_without_a_job(pdj: Pdj):
    (pdj.folder / "pod.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    assert "contains no PaddleJob" in rejected(pdj, "pod.yaml")


def test_every_fault_of_a_job_at_once(pdj: Pdj):
    file = Path(pdj.write(command=["true"], cleanPodPolicy="Sometimes"))
    file.write_text(file.read_text().replace("image: program", "imag: program"))
    output = rejected(pdj, str(file))
    assert "spec.cleanPodPolicy" in output
    assert 'did you mean "image"?' in output


def test_two_jobs_of_one_name_in_a_file(pdj: Pdj):
    file = Path(pdj.write(command=["true"]))
    file.write_text(f"{file.read_text()}---\n{file.read_text()}")
    assert "two jobs are named job" in rejected(pdj, str(file))


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


def test_an_image_without_a_command(pdj: Pdj):
    assert "has no command" in rejected(pdj, pdj.write(), code=1)


def test_a_volume_option_that_names_no_directory(pdj: Pdj):
    output = rejected(pdj, "--volume", "claim=/no/such/place", pdj.write(command=["true"]))
    assert "/no/such/place is not a directory" in output


def test_a_volume_option_that_no_job_has(pdj: Pdj):
    pod = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "efsvol"}}]}
    output = rejected(pdj, "--volume", f"efsvl={pdj.folder}", pdj.write(command=["true"], pod=pod))
    assert "--volume efsvl: no volume claim has this name; the job has: efsvol" in output


def test_an_image_option_that_no_container_has(pdj: Pdj):
    output = rejected(pdj, "--image", f"other={pdj.folder}", pdj.write(command=["true"]))
    assert "--image other: no container uses this image; the job has: program" in output


def test_an_image_option_for_a_job_without_an_image(pdj: Pdj):
    output = rejected(pdj, "--image", f"other={pdj.folder}", pdj.write(command=["true"], container={"image": ""}))
    assert output == "pdj: --image other: no container uses this image; the job names no image\n"


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


@pytest.mark.parametrize("verb", ["run", "delete"])
def test_a_bad_namespace_on_the_command_line_is_one_message(pdj: Pdj, verb: str):
    thesis = precious(pdj)
    file = pdj.write("project", command=["true"])
    done = pdj(verb, file if verb == "run" else "project", "-n", "../..")
    assert done.returncode == 2, done
    assert done.stderr.startswith("pdj: --namespace ../..: is not a valid namespace")
    assert "Traceback" not in done.stderr
    assert thesis.exists()


@pytest.mark.parametrize("verb", ["get", "delete"])
def test_a_job_name_that_leads_out_of_the_store_is_rejected(pdj: Pdj, verb: str):
    thesis = precious(pdj)
    done = pdj(verb, "../../../project")
    assert done.returncode == 2, done
    assert "not a valid job name" in done.stderr
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


def test_a_misspelled_gpu_is_rejected_as_by_validate_and_nothing_starts(pdj: Pdj):
    job = pdj.write("job", container={"resources": {"limits": {"gpu": 1}}}, command=["true"])
    assert "nvidia.com/gpu" in rejected(pdj, job)


def test_an_empty_command_is_rejected(pdj: Pdj):
    assert "is empty; write the name of the program" in rejected(pdj, pdj.write("job", command=[""]))


def test_a_run_that_fails_to_start_keeps_the_former_job_of_its_name(pdj: Pdj):
    assert pdj("run", pdj.write("job", command=["echo", "first"])).returncode == 0
    assert pdj("run", pdj.write("job", command=[""])).returncode == 2
    assert "first" in pdj("logs", "job").stdout
