"""The verbs that need no cluster: validate, plan, crd."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paddlejob.cli.main import VERBS, load_verb
from paddlejob.errors import BadInput

ROOT = Path(__file__).parent.parent.parent.parent
EXAMPLE = "deploy/examples/wide_and_deep_volcano.yaml"


def pdj(*arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paddlejob", *arguments], cwd=ROOT, input=input, capture_output=True, text=True
    )


def test_valid_files_are_reported_with_their_jobs():
    done = pdj("validate", EXAMPLE, "deploy/examples/resnet.yaml")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{EXAMPLE}: valid (wide-ande-deep)",
        "deploy/examples/resnet.yaml: valid (resnet)",
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
        with pytest.raises(BadInput, match="is not a valid name"):
            option.callback(None, option, bad)
