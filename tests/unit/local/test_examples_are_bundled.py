"""Every job file that we ship runs on this machine as it is: its images are known here."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paddlejob.api.validate import faults
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.images import argv, find_image

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("examples/*/job.yaml"), *ROOT.glob("deploy/examples/*.yaml")])
JOBS = [
    pytest.param(one, id=f"{path.relative_to(ROOT)}")
    for path in FILES
    for one in yaml.safe_load_all(path.read_text())
    if one["kind"] == "PaddleJob"
]


@pytest.mark.parametrize("job", JOBS)
def test_a_shipped_job(job: dict):
    assert faults(job) == []
    for role in ("ps", "worker", "heter"):
        for container in job["spec"].get(role, {}).get("template", {}).get("spec", {}).get("containers", []):
            image = find_image(container["image"], RunOptions())
            assert "running the code in" not in image.note, image.note
            assert image.directory is None or image.bundled
            assert argv(container, RunOptions())


def test_there_are_some():
    assert len(JOBS) >= 13
