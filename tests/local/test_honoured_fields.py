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
