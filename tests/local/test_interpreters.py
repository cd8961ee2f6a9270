"""Every worker runs the interpreter that its job was started with, however many start at once."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.support.interpreters import interpreter
from tests.support.pdj import PATIENCE, START, Pdj

ASK = "for i in 1 2 3 4 5; do python -c 'import os; print(os.environ[\"CHOSEN\"])'; python3 -c 'import sys'; done"


def test_two_jobs_with_many_workers_and_different_interpreters_at_once(pdj: Pdj):
    names = ("one3", "two3")
    file = {name: pdj.write(name, command=["bash", "-ec", ASK], workers=4, backoffLimit=0) for name in names}
    running = [
        pdj.start("run", "--overcommit", "--python", interpreter(pdj.folder / name), file[name]) for name in names
    ]
    for name, run in zip(names, running, strict=True):
        output, _ = run.communicate(timeout=180)
        assert run.returncode == 0, output
        for index in range(4):
            assert pdj.log(name, f"worker-{index}").split() == [name] * 5


@pytest.mark.parametrize(("beside", "runs"), [((), False), (("python", "python3"), True)])
def test_where_the_state_directory_cannot_hold_programs_no_other_python_runs_instead(
    pdj: Pdj, beside: tuple[str, ...], runs: bool
):
    """In a mount namespace of its own. An environment has `python` and `python3`, a single program has neither."""
    pdj.state.mkdir()
    chosen = interpreter(pdj.folder / "bin" / "mine3")
    for name in beside:
        (pdj.folder / "bin" / name).symlink_to("mine3")
    file = pdj.write(command=["bash", "-ec", ASK], backoffLimit=0)
    run = shlex.join([*START, "run", "--python", chosen, file])
    script = f"mount -t tmpfs -o noexec none '{pdj.state}' && {run}; cat {pdj.state}/jobs/*/*/logs/*/*"
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script],
        env=pdj.environment,
        cwd=pdj.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ("mine3\n" * 5 in done.stdout) is runs, done
    rejected = f"{pdj.state} is on a file system without programs (noexec), so `python` would not be {chosen}"
    assert (rejected in done.stderr) is not runs
