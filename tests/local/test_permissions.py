"""Files that the user may not read: a message, and never a list that looks empty."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.pdj import START, Pdj

OTHER_USER = 65534
DROPPED = "-dac_override,-dac_read_search,-fowner,-chown"


def lock(path: Path) -> None:
    """Make a path one of another user, or one that its owner may not read."""
    path.chmod(0o700 if os.geteuid() == 0 else 0)
    if os.geteuid() == 0:
        os.chown(path, OTHER_USER, OTHER_USER)


def without_privileges(pdj: Pdj, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Root may read everything, so it gives that up first."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs setpriv to give up the privileges of root")
    drop = ["setpriv", f"--bounding-set={DROPPED}", f"--inh-caps={DROPPED}"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*drop, *START, *arguments], cwd=pdj.folder, env=pdj.environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("locked", ["jobs", "jobs/default", "history"])
@pytest.mark.parametrize("command", [["list"], ["list", "--history"], ["clean"]])
def test_a_state_directory_of_another_user_does_not_look_empty(pdj: Pdj, command: list[str], locked: str):
    (pdj.state / "jobs/default/mine").mkdir(parents=True)
    (pdj.state / "history/default/mine").mkdir(parents=True)
    lock(pdj.state / locked)
    done = without_privileges(pdj, *command)
    (pdj.state / locked).chmod(0o755)
    assert done.returncode == 1, done.stdout
    assert done.stderr == (
        f"pdj: {pdj.state / locked}: Permission denied; set PADDLEJOB_STATE to a writable directory\n"
    )


def test_a_program_that_cannot_be_read_is_not_started(pdj: Pdj):
    (pdj.folder / "train.py").write_text("print(1)")
    lock(pdj.folder / "train.py")
    done = without_privileges(pdj, "run", "train.py")
    assert done.returncode == 2, done.stdout
    assert done.stderr == "pdj: train.py cannot be read: Permission denied; change its permissions\n"
