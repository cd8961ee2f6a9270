"""`pdj why` shows the log once, says how long ago the last output was, and always ends with what to do next."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.client.describe.explain import explain
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.logs.job_pods import last_output
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget
from paddlejob.targets.views import JobView, PodView
from tests.support.builders import NOON, job
from tests.support.pdj import Pdj

OUTPUT = "ValueError: the learning rate is negative"


@pytest.fixture
def pdj(tmp_path: Path) -> Iterator[Pdj]:
    made = Pdj(tmp_path)
    yield made
    made.close()


def view(phase: str, note: str = "", pods: list[PodView] | None = None, **status: Any) -> JobView:
    phases = {str(one) for one in Phase}
    made = job(status={"phase": phase, **status} if phase in phases else dict(status))
    return JobView(made, {}, phase, note, pods or [], flags=" --cluster -n team")


@pytest.mark.parametrize("phase", [*map(str, Phase), "Created", "Deleting"])
def test_the_last_line_says_what_to_do_next(phase: str) -> None:
    last = str(explain(view(phase, message="something happened"))).splitlines()[-1]
    assert last.startswith("Next: ")
    assert " --cluster -n team`" in last


def test_the_remedy_of_a_note_is_the_next_step_and_is_not_repeated() -> None:
    text = str(explain(view("Pending", "no operator is installed in this cluster; run `pdj install`")))
    assert text.splitlines() == [
        "mnist is pending: no operator is installed in this cluster",
        "",
        "Next: run `pdj install`.",
    ]


def test_the_output_of_a_worker_that_is_replaced_alone_follows_the_state_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paddlejob.client.describe.humanize.time", SimpleNamespace(time=lambda: NOON + 90))
    text = str(explain(view("Running", reason="WorkerReplaced", message=f"worker 2 failed\n{OUTPUT}", restarts=1)))
    assert text.splitlines()[:2] == ["mnist is running: worker 2 failed, for 90s, 1 restart.", OUTPUT]


def test_the_output_of_the_program_is_printed_once(pdj: Pdj) -> None:
    program = f"import sys; print('reading rates\\n{OUTPUT}', file=sys.stderr); sys.exit(3)"
    pdj("run", pdj.write(command=["python", "-c", program], backoffLimit=0))
    output = pdj.here("why", "job").stdout
    assert output.startswith(f"job failed: BackoffLimitExceeded: {OUTPUT} (worker 0, exit status 3); ")
    assert output.count("reading rates") == 1, output
    assert "Last lines of worker-0" in output
    assert "Last output: " in output
    assert output.splitlines()[-1].startswith("Next: read `pdj logs job --role worker --index 0`")


def test_programs_can_read_the_explanation(pdj: Pdj) -> None:
    pdj(
        "run",
        "-n",
        "team",
        pdj.write(command=["bash", "-c", "echo No module named \\'pandas\\'; exit 3"], backoffLimit=0),
    )
    explained = json.loads(pdj.here("why", "job", "-n", "team", "-o", "json").stdout)
    assert (explained["name"], explained["namespace"], explained["phase"]) == ("job", "team", "Failed")
    assert explained["log"] == ["No module named 'pandas'"]
    assert explained["lastOutput"]["replica"] == "worker-0"
    assert "has no module pandas" in explained["hint"]
    assert "pdj logs job --role worker --index 0 -n team" in explained["next"]


def test_the_age_of_the_last_output_is_that_of_the_newest_log(tmp_path: Path) -> None:
    pods = []
    for index, age in enumerate((7200, 600)):
        log = tmp_path / f"{index}.log"
        log.write_text("loss=0.5\n")
        os.utime(log, (time.time() - age,) * 2)
        pods.append(PodView(f"mnist-worker-{index}", "worker", index, "Running", log=str(log)))
    (tmp_path / "silent.log").touch()
    pods.append(PodView("mnist-worker-2", "worker", 2, "Running", log=str(tmp_path / "silent.log")))
    seen = view("Running", pods=pods, message="all pods are running")
    output = SyncTarget(LocalTarget()).last_output(seen)
    assert output
    assert output.replica == "worker-1"
    assert "Last output: 10m ago, from worker-1." in str(explain(seen, output))
    assert "Last output" not in str(explain(seen, None))


class _ApiServer(BaseHTTPRequestHandler):
    """Answers requests for the last line of a pod's log, as the API server and a kubelet do."""

    asked: list[str] = []  # noqa: RUF012
    LOGS = {  # noqa: RUF012
        "mnist-worker-0": b"2027-01-15T08:00:00.123456789Z loss=0.5\n",
        "mnist-worker-1": b"2027-01-15T08:00:30.000000001Z loss=0.4\n",
        "mnist-worker-2": b"",
    }

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.LOGS.get(self.path.split("/")[6])
        self.send_response(200 if body is not None else 500)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: Any) -> None:
        pass


async def test_on_a_cluster_the_timestamp_of_the_last_line_counts() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _ApiServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        async with Client(Access(f"http://127.0.0.1:{server.server_port}")) as client:
            found = await last_output(client, [_pod(index) for index in range(4)])
    finally:
        server.shutdown()
    assert found == ("worker-1", 1800000030.0)
    assert all("tailLines=1" in path and "timestamps=true" in path for path in _ApiServer.asked)


def test_a_job_of_another_controller_is_not_said_to_wait_for_the_operator():
    managed = JobView(job(managedBy="kueue.x-k8s.io/multikueue"), {}, "Created", "", [], flags="")
    assert "Managed by kueue.x-k8s.io/multikueue, which has not reported a status yet." in str(explain(managed))


def _pod(index: int) -> dict[str, Any]:
    labels = {"paddle-res-name": f"mnist-worker-{index}"}
    return {
        "metadata": {"name": f"mnist-worker-{index}", "namespace": "default", "labels": labels | _labels(index)},
        "spec": {"containers": [{"name": "paddle"}]},
        "status": {"containerStatuses": [{"name": "paddle", "state": {"running": {}}}]},
    }


def _labels(index: int) -> dict[str, str]:
    from paddlejob import contract

    return {contract.LABEL_ROLE: "worker", contract.LABEL_INDEX: str(index)}


def quota(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "QuotaReserved", "status": status}], "queue": "research"}


@pytest.mark.parametrize("phase", ["Pending", "Suspended"])
def test_a_job_that_waits_for_quota_names_its_queue(phase: str) -> None:
    message = "waiting for quota in queue research: insufficient unused quota for cpu"
    text = str(explain(view(phase, reason="WaitingForQuota", message=message, **quota("False"))))
    assert "insufficient unused quota for cpu" in text
    assert text.splitlines()[-1].startswith("Next: wait until its queue has quota; `kubectl get localqueue research`")


def test_a_job_that_waits_in_vain_names_the_remedy_instead() -> None:
    message = "queue research cannot admit the job; correct the queue or its name: LocalQueue research doesn't exist"
    text = str(explain(view("Pending", reason="Inadmissible", message=message, **quota("False"))))
    assert text.splitlines()[-1].startswith("Next: do what is described above")


def test_a_job_that_has_quota_is_explained_as_any_other() -> None:
    text = str(explain(view("Running", reason="Running", message="all pods are running", **quota("True"))))
    assert text.splitlines()[-1] == "Next: follow its output with `pdj logs -f mnist --cluster -n team`."
