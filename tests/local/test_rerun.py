"""`pdj rerun`: a job that has ended runs once more, as it ran before."""

from __future__ import annotations

from tests.support.pdj import Pdj

READS = ["bash", "-c", "echo run with $FLAVOUR in $(basename $PWD); test -e good || exit 3"]


def test_a_job_that_failed_runs_again_with_its_options_and_environment(pdj: Pdj):
    pdj.environment["FLAVOUR"] = "vanilla"
    assert pdj("run", "--no-restart", pdj.write(command=READS)).returncode == 1
    before, output = pdj.folder_of("job").job(), pdj.log("job", "worker-0")
    assert before and output.startswith("run with vanilla in ")
    (pdj.folder / "good").touch()
    pdj.environment["FLAVOUR"] = "lemon"
    done = pdj("rerun", "job")
    assert done.returncode == 0, done.stderr
    assert "pdj logs -f job" in done.stdout
    status = pdj.until("job", phase="Completed")
    after = pdj.folder_of("job").job()
    assert after and after.metadata.uid != before.metadata.uid
    assert status.attempt == 1 and after.spec.backoffLimit == before.spec.backoffLimit
    assert pdj.log("job", "worker-0") == output


def test_a_job_that_runs_is_not_started_again(pdj: Pdj):
    assert pdj("run", "--detach", pdj.write(command=["sleep", "300"])).returncode == 0
    pdj.until("job", phase="Running")
    done = pdj("rerun", "job")
    assert done.returncode == 2
    assert "job job has not ended (Running); wait for its end (`pdj watch job`), or first delete" in done.stderr
    missing = pdj("rerun", "other")
    assert missing.returncode == 2 and "job other not found" in missing.stderr
