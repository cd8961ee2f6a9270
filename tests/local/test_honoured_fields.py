"""Fields of a template that have an effect on one machine too, and a note for those that have none."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.support.pdj import Pdj


def test_hooks_hostname_threads_and_the_termination_message(pdj: Pdj):
    script = (
        "echo $HOSTNAME $(hostname) $OMP_NUM_THREADS; until [ -e started ]; do sleep 0.05; done;"
        "echo the last word > /nas-of-a-test/message; exit 5"
    )
    container = {
        "resources": {"limits": {"cpu": "2500m"}},
        "terminationMessagePath": "/nas-of-a-test/message",
        "lifecycle": {"postStart": {"exec": {"command": ["touch", "started"]}}},
    }
    file = pdj.write(command=["bash", "-c", script], container=container, pod={"hostname": "trainer"}, backoffLimit=0)
    pdj.environment.pop("OMP_NUM_THREADS", None)
    failed = pdj("run", "--overcommit", file)
    assert pdj.log("job", "worker-0") == "trainer trainer 2\n"
    assert "the last word" in failed.stderr
    assert not Path("/nas-of-a-test").exists()


def test_a_pre_stop_hook_runs_before_the_program_is_asked_to_end(pdj: Pdj):
    trap = "trap 'echo asked >> order; exit 0' TERM; touch up; while true; do sleep 0.05; done"
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["bash", "-c", "echo hook >> order"]}}}}
    pdj("run", "-d", pdj.write(command=["bash", "-c", trap], container=hook))
    pdj.until("job", phase="Running")
    while not (pdj.folder / "up").exists():
        pass
    assert pdj("delete", "job").returncode == 0
    assert (pdj.folder / "order").read_text().split() == ["hook", "asked"]


def test_a_post_start_hook_that_fails_is_the_reason_with_its_status_and_output(pdj: Pdj):
    hook = {"postStart": {"exec": {"command": ["bash", "-c", "echo no license server; exit 3"]}}}
    file = pdj.write(command=["sleep", "300"], container={"lifecycle": hook}, backoffLimit=0)
    failed = pdj("run", file)
    assert failed.returncode == 1
    expected = "job-worker-0 was killed: its postStart hook failed with exit status 3; correct the hook"
    assert f"{expected}; failed once, backoffLimit is 0\nno license server" in failed.stderr
    assert "137" not in failed.stderr
    why = pdj("why", "job").stdout
    assert expected in why
    assert "no license server" in why
    assert "no license server" in pdj("logs", "job", "-c", "paddle.postStart").stdout


def test_a_post_start_hook_that_does_not_exist_ends_its_container_as_on_a_cluster(pdj: Pdj):
    hook = {"postStart": {"exec": {"command": ["no-such-hook"]}}}
    failed = pdj("run", pdj.write(command=["sleep", "300"], container={"lifecycle": hook}, backoffLimit=0))
    assert failed.returncode == 1
    assert "its postStart hook could not start: no-such-hook: no such command; correct the hook" in failed.stderr


def test_fields_without_effect_are_noted_in_one_line(pdj: Pdj):
    file = Path(pdj.write(command=["true"], pod={"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}]}))
    document = yaml.safe_load(file.read_text())
    container = document["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["livenessProbe"] = {"exec": {"command": ["false"]}}
    container["securityContext"] = {"runAsUser": 1000}
    file.write_text(yaml.safe_dump(document))
    done = pdj("run", str(file))
    notes = [line for line in done.stderr.splitlines() if "only on a cluster" in line]
    assert notes == ["note: No effect on one machine, only on a cluster: hostAliases, livenessProbe, securityContext."]
