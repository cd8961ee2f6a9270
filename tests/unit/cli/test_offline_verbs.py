"""The verbs that need no cluster: validate, plan, crd."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paddlejob.cli.main import VERBS, load_verb
from paddlejob.cli.verbs.init import starter_file
from paddlejob.errors import BadInput
from tests.support.builders import document
from tests.support.called_pdj import pdj

ROOT = Path(__file__).parent.parent.parent.parent
EXAMPLE = "deploy/examples/wide_and_deep_volcano.yaml"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_valid_files_are_reported_with_their_jobs():
    done = pdj("validate", EXAMPLE, "deploy/examples/resnet.yaml")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{EXAMPLE}: valid (wide-ande-deep)",
        "deploy/examples/resnet.yaml: valid (resnet)",
    ]


def test_the_launcher_with_servers_is_valid_but_warned_about():
    text = (ROOT / EXAMPLE).read_text().replace("image:", "command: [sh, -c, fleetrun train.py]\n            image:")
    done = pdj("validate", "-", input=text)
    assert (done.returncode, done.stdout) == (0, "standard input: valid (wide-ande-deep)\n")
    assert [line.split(";")[0] for line in done.stderr.splitlines()] == [
        f"warning: standard input:{line}: spec.{role}: fleetrun waits forever in a job with parameter servers"
        for role, line in (("ps", 19), ("worker", 9))
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such.yaml", "no such file"),
        ("deploy", "is a directory"),
        ("deploy/v1/crd.yaml", "contains no PaddleJob"),
    ],
)
def test_bad_input_is_one_line_and_no_traceback(name: str, message: str):
    done = pdj("validate", name)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_all_faults_of_all_files_are_listed():
    text = (ROOT / EXAMPLE).read_text().replace("withGloo: 1", "withGloo: 7").replace("replicas: 2", "replicas: 0")
    done = pdj("validate", "-", "no/such.yaml", input=text)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 4, done.stderr


def test_validation_results_can_be_read_by_programs(tmp_path: Path):
    text = (ROOT / "deploy/examples/resnet.yaml").read_text().replace("replicas: 2", "replicas: 0")
    (tmp_path / "bad.yaml").write_text(text)
    (tmp_path / "tab.yaml").write_text("a:\n\tb: c\n")
    done = pdj("validate", "-o", "json", str(tmp_path / "bad.yaml"), str(tmp_path / "tab.yaml"), EXAMPLE)
    assert (done.returncode, done.stderr) == (2, "")
    bad, tab, good = json.loads(done.stdout)
    line = text.splitlines().index("    replicas: 0") + 1
    assert bad["errors"] == [
        {"message": "0 is less than 1; use 1 or more", "path": "spec.worker.replicas", "line": line}
    ]
    assert (tab["valid"], tab["errors"][0]["line"]) == (False, 2)
    assert (good["valid"], good["jobs"], good["errors"], good["warnings"]) == (True, ["wide-ande-deep"], [], [])
    assert yaml.safe_load(pdj("validate", "-o", "yaml", EXAMPLE).stdout) == [good]


def test_a_warning_does_not_make_a_file_invalid():
    text = starter_file("single").replace("# command:", "command:")
    done = pdj("validate", "-", input=text.replace('["python", "train.py"]', '["python train.py"]'))
    assert (done.returncode, done.stdout) == (0, "standard input: valid (mnist)\n")
    assert done.stderr.startswith("warning: standard input:")
    assert done.stderr.rstrip().endswith('write ["python", "train.py"]')


@pytest.mark.parametrize("verb", ["validate", "run", "plan", "submit"])
def test_a_paddle_job_of_kubeflow_is_reported_with_the_command_that_converts_it(verb: str, tmp_path: Path):
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "metadata": {"name": "x"}, "spec": {}}
    file = tmp_path / "kubeflow.yaml"
    file.write_text(yaml.safe_dump(job))
    done = pdj(verb, str(file))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"{file}:1: apiVersion: kubeflow.org/v1 is the PaddleJob of Kubeflow" in done.stderr
    assert f"convert it with `pdj convert {file} -o converted.yaml`" in done.stderr


def test_running_a_program_shows_the_commands_that_train_it_and_they_work(tmp_path: Path):
    program = tmp_path / "mnist.py"
    program.write_text("print('trained by hand')")
    for verb, name in (("validate", program), ("run", tmp_path)):
        done = pdj(verb, str(name))
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        (run,) = re.findall(r"`pdj ([^`]+)`", done.stderr)
    state = {**os.environ, "PADDLEJOB_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-m", "paddlejob", *run.split(), "--save", str(tmp_path / "job.yaml")]
    ran = subprocess.run(command, env=state, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, "trained by hand" in ran.stdout) == (0, True), ran.stderr
    assert "no job file" not in pdj("validate", str(tmp_path)).stderr
    assert f"such as {tmp_path}/job.yaml" in pdj("validate", str(tmp_path)).stderr


def test_the_plan_shows_the_objects_that_would_be_created():
    done = pdj("plan", EXAMPLE)
    objects = list(yaml.safe_load_all(done.stdout))
    kinds = [one["kind"] for one in objects]
    assert kinds == ["PodGroup", "Pod", "Pod", "Pod", "Pod", "ConfigMap"]
    assert objects[-1]["data"]["PADDLE_TRAINER_ENDPOINTS"] == "10.0.0.3:2379,10.0.0.4:2379"
    assert objects[1]["spec"]["schedulerName"] == "volcano"


def test_the_plan_for_this_machine_has_loopback_addresses():
    done = pdj("plan", "deploy/examples/wide_and_deep_podip.yaml", "--engine", "local")
    data = list(yaml.safe_load_all(done.stdout))[-1]["data"]
    assert data["PADDLE_TRAINER_ENDPOINTS"].startswith("127.")


def test_a_plan_of_a_job_without_metadata_is_one_message():
    done = pdj("plan", "-", "-n", "team", input="apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nspec: {}\n")
    assert (done.returncode, done.stderr) == (2, "pdj: standard input:1: metadata is missing; add it\n")


def test_an_unknown_engine_is_rejected():
    done = pdj("plan", EXAMPLE, "--engine", "slurm")
    assert (done.returncode, "use kubernetes or local" in done.stderr) == (2, True)


def test_the_crd_is_the_committed_one():
    committed = (ROOT / "deploy/v1/crd.yaml").read_text()
    assert yaml.load(pdj("crd").stdout, yaml.CSafeLoader) == yaml.load(committed, yaml.CSafeLoader)


def test_generated_files_are_what_would_be_generated():
    done = subprocess.run([sys.executable, "-m", "tools.generate", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("verb", [name for name in VERBS if name not in ("data", "aws")])
def test_every_verb_checks_the_namespace_and_the_name_that_it_is_given(verb: str):
    options = {option.name: option for option in load_verb(verb).params}
    for name, bad in (("namespace", "../.."), ("name", "../../project")):
        option = options.get(name)
        if option is None or verb in ("init", "operator"):
            continue
        with pytest.raises(BadInput, match=r"is not a valid (job name|namespace)"):
            option.callback(None, option, bad)


def test_a_dry_run_of_a_submission_needs_no_cluster(tmp_path: Path):
    (tmp_path / "train.py").write_text("print(1)")
    offline = {"KUBECONFIG": "", "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    options = ("--image", "any", "--code", ".", "--dry-run")
    for program in ("train.py", "./train.py"):
        done = pdj("submit", program, *options, folder=tmp_path, **offline)
        assert done.returncode == 0, done.stderr
        job = yaml.safe_load(done.stdout)
        assert (job["metadata"]["name"], job["metadata"]["namespace"]) == ("train", "default")
        container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
        assert container["command"] == ["python", program]
    other = pdj("submit", "train.py", *options, "--context", "none", folder=tmp_path, **offline)
    assert (other.returncode, other.stdout) == (1, ""), "a context that does not exist is an error"


def test_a_command_that_a_message_names_works_as_printed(tmp_path: Path):
    (tmp_path / "train.py").touch()
    done = pdj("run", "train.py", "--save", "my job.yaml", "--dry-run", folder=tmp_path)
    assert "`pdj run 'my job.yaml'`" in done.stderr
    assert "`pdj run 'your job.yaml'`" in pdj("init", "-o", "your job.yaml", folder=tmp_path).stdout


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
    assert "new.json already exists" in pdj("convert", "old.yaml", "-o", "new.json", folder=tmp_path).stderr
    both = [BATCH, {**BATCH, "metadata": {"name": "second"}}]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all(both))
    notes = pdj("convert", "two.yaml", folder=tmp_path).stderr
    assert "note: old: spec" in notes and "note: second: spec" in notes
    (tmp_path / "none.yaml").write_text(yaml.safe_dump(secret))
    assert pdj("convert", "none.yaml", folder=tmp_path).stderr.startswith(
        "pdj: none.yaml: v1 Secret cannot be converted"
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


BATCH = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "old"},
    "spec": {"parallelism": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "t", "image": "i", "env": [{"name": "CONF_PADDLE_PORT", "value": "7164"}]}
    ]}}},
}  # fmt: skip
