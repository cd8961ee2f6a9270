"""The verbs as users type them, against an API server that answers as a test scripts it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.support.cluster_verbs import Pdj
from tests.support.scripted_cluster import ScriptedCluster

RUNNING = {"phase": "Running", "reason": "Running", "message": "all pods are running", "attempt": 1}
ENDED = {
    "phase": "Completed",
    "message": "all workers succeeded",
    "attempt": 1,
    "completionTime": "2027-01-15T09:00:00Z",
}


async def test_jobs_are_listed_with_their_target(api: ScriptedCluster, called: Pdj):
    empty = await called("list", "--cluster")
    assert empty.stderr.splitlines()[0] == "No jobs found; start one with `pdj submit FILE`."
    api.add_job(RUNNING, ps=1)
    done = await called("list", "--cluster")
    assert done.stdout.split()[:8] == ["NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE", "mnist"]
    assert "target: cluster at http://127.0.0.1:" in done.stderr and "all namespaces; change it" in done.stderr
    wide = await called("list", "--cluster", "-n", "default", "-o", "wide")
    assert wide.stdout.splitlines()[1].endswith("all pods are running")
    assert "namespace default;" in wide.stderr
    listed = json.loads((await called("list", "--cluster", "-o", "json")).stdout)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["mnist"]
    history = await called("list", "--cluster", "--history")
    assert (history.returncode, "a cluster keeps no previous runs" in history.stderr) == (2, True)


async def test_the_newest_jobs_are_listed_first_and_chosen_by_phase_and_number(api: ScriptedCluster, called: Pdj):
    for name, day, status in (("old", 1, RUNNING), ("new", 3, ENDED), ("middle", 2, RUNNING)):
        api.add_job(status, name)["metadata"]["creationTimestamp"] = f"2027-01-0{day}T00:00:00Z"

    async def listed(*options: str) -> tuple[list[str], str]:
        done = await called("list", "--cluster", *options)
        return [line.split()[0] for line in done.stdout.splitlines()[1:]], done.stderr.splitlines()[0]

    assert (await listed())[0] == ["new", "middle", "old"]
    assert (await listed("--phase", "running"))[0] == ["middle", "old"]
    assert await listed("--limit", "1") == (["new"], "2 older jobs are not shown (--limit 1)")
    assert await listed("--phase", "Failed", "--phase", "Pending") == ([], "No job is Failed or Pending.")
    chosen = json.loads((await called("list", "--cluster", "--phase", "Completed", "-o", "json")).stdout)
    assert [one["metadata"]["name"] for one in chosen["items"]] == ["new"]


async def test_a_job_is_shown_and_explained(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING)
    name = api.add_pod()["metadata"]["name"]
    api.logs[name] = ["loss=1"]
    shown = await called("get", "mnist", "--cluster")
    assert shown.stdout.splitlines()[0].startswith("mnist: Running (Collective)")
    assert "last output" in shown.stdout
    assert yaml.safe_load((await called("get", "mnist", "--cluster", "-o", "yaml")).stdout)["kind"] == "PaddleJob"
    why = await called("why", "mnist", "--cluster")
    assert "from worker-0." in why.stdout
    assert why.stdout.endswith("Next: follow its output with `pdj logs -f mnist --cluster`.\n")
    assert json.loads((await called("why", "mnist", "--cluster", "-o", "json")).stdout)["phase"] == "Running"
    missing = await called("get", "absent", "--cluster")
    assert (missing.returncode, "existing jobs: mnist" in missing.stderr) == (2, True)


async def test_logs_are_printed_chosen_and_saved(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    api.add_job(ENDED)
    for index in (0, 1):
        api.logs[api.add_pod(index, state="terminated")["metadata"]["name"]] = [f"start {index}", "loss=1", "end"]
    every = await called("logs", "mnist", "--cluster")
    assert every.stdout.splitlines()[0] == "[worker-0] start 0"
    one = await called("logs", "mnist", "--cluster", "--role", "worker", "--index", "1", "--tail", "1")
    assert one.stdout == "end\n"
    assert (await called("logs", "mnist", "--cluster", "--index", "0", "--grep", "loss")).stdout == "loss=1\n"
    saved = await called("logs", "mnist", "--cluster", "--save", "out")
    assert saved.stdout == every.stdout
    assert (tmp_path / "out/mnist-worker-1.log").read_text() == "start 1\nloss=1\nend\n"
    again = await called("logs", "mnist", "--cluster", "--save", "out")
    assert (again.returncode, "has logs of mnist already" in again.stderr) == (2, True)
    assert "use ps, worker or heter" in (await called("logs", "mnist", "--cluster", "--role", "x")).stderr
    assert "is not a duration" in (await called("logs", "mnist", "--cluster", "--since", "x")).stderr
    await called("logs", "mnist", "--cluster", "--since", "10m")
    assert "sinceTime" in api.queries[-1][1]


async def test_metrics_are_printed_in_three_formats(api: ScriptedCluster, called: Pdj):
    api.add_job(ENDED)
    name = api.add_pod(state="terminated")["metadata"]["name"]
    api.logs[name] = ["step 1/2 loss=0.5", "hello", "step 2/2 loss=nan"]
    table = (await called("metrics", "mnist", "--cluster")).stdout.splitlines()
    assert [line.split()[-2:] for line in table] == [["STEP", "LOSS"], ["1/2", "0.5"], ["2/2", "nan"]]
    csv = (await called("metrics", "mnist", "--cluster", "-o", "csv")).stdout.splitlines()
    assert csv[0].startswith("time,attempt,step,total_steps") and csv[1].startswith("2027-01-15T08:00:00Z,1,1,2,")
    rows = json.loads((await called("metrics", "mnist", "--cluster", "-o", "json")).stdout)
    assert rows[1] == {"time": "2027-01-15T08:00:02Z", "attempt": 1, "step": 2, "total_steps": 2, "loss": "nan"}
    followed = await called("metrics", "mnist", "--cluster", "-o", "json", "-f")
    assert [json.loads(line)["step"] for line in followed.stdout.splitlines()] == [1, 2]
    assert "cannot be used with a table" in (await called("metrics", "mnist", "--cluster", "-f")).stderr
    api.logs[name] = ["hello"]
    nothing = await called("metrics", "mnist", "--cluster")
    assert "the log of job mnist shows no progress. Lines such as" in nothing.stderr
    api.add_job(ENDED, progress={"pattern": r"at (?P<step>\d+)"})
    assert "matches no line of its log; change or remove it" in (await called("metrics", "mnist", "--cluster")).stderr


async def test_jobs_are_changed_and_deleted(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING, elastic=1)
    assert (await called("scale", "mnist", "3", "--cluster")).stdout == "mnist scaled to 3 workers\n"
    assert (await called("suspend", "mnist", "--context", "west")).stdout == (
        "mnist suspended; run `pdj resume mnist --context west` to continue\n"
    )
    assert (await called("resume", "mnist", "--cluster")).stdout == (
        "mnist resumed in the background; follow it with `pdj logs -f mnist --cluster`\n"
    )
    assert [one.body["spec"] for one in api.written("PATCH")] == [
        {"worker": {"replicas": 3}}, {"suspend": True}, {"suspend": False}
    ]  # fmt: skip
    early = await called("rerun", "mnist", "--cluster")
    assert "job mnist has not ended (Running); wait for its end (`pdj watch mnist --cluster`), or" in early.stderr
    assert (await called("delete", "mnist", "--cluster", "--no-wait")).stdout == "mnist is being deleted\n"
    bad = await called("delete", "a/b", "--cluster")
    assert (bad.returncode, "is not a valid job name" in bad.stderr) == (2, True)


async def test_a_job_that_has_ended_runs_again(api: ScriptedCluster, called: Pdj):
    api.add_job(ENDED)
    done = await called("rerun", "mnist", "--cluster")
    assert done.stdout == "mnist runs again; follow it with `pdj logs -f mnist --cluster`\n"
    assert [one.method for one in api.asked] == ["DELETE", "POST"]
    assert api.tried == ["mnist-rerun"]
