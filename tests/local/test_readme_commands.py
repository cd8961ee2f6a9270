"""The commands of the README that train a program, as they are printed there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.pdj import Pdj

ROOT = Path(__file__).parents[2]
SHOWS = "import os, sys; print('loss=1', os.environ['TRAINING_ROLE'], sys.argv[1:])"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {token: none}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
"""


def commands(readme: str) -> list[list[str]]:
    """Those of the block that trains train.py."""
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / readme).read_text(), re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if "pdj run train.py" in block]
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def test_both_languages_show_the_same_commands():
    assert commands("README.md") == commands("README.zh-CN.md")


@pytest.mark.full
def test_every_command_works_as_printed(pdj: Pdj):
    """With a small program; tests/local/test_programs.py and tests/e2e/test_code.py train with PaddlePaddle."""
    (pdj.folder / "train.py").write_text(SHOWS)
    (pdj.folder / "kubeconfig").write_text(KUBECONFIG)
    pdj.environment |= {"KUBECONFIG": str(pdj.folder / "kubeconfig"), "XDG_CONFIG_HOME": str(pdj.folder / "config")}
    for _, verb, *arguments in commands("README.md"):
        done = pdj(verb, *arguments, *(["--dry-run"] if verb == "submit" else []))
        assert done.returncode == 0, done.stderr
        if verb == "submit":
            worker = yaml.safe_load(done.stdout)["spec"]["worker"]
            assert worker["replicas"] == 8
        elif verb == "run":
            assert "loss=1 TRAINER" in pdj.log("train", "worker-1")
        elif verb == "watch":
            assert "train completed in" in done.stdout
        else:
            assert done.stdout.count("loss=1") == 2
