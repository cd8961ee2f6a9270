"""`pdj convert` as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "examples" / "batch-job"


def pdj(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from paddlejob.cli.main import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_job_goes_to_standard_output_and_the_notes_to_both():
    ran = pdj("convert", str(EXAMPLES / "paddle-cluster-job.yaml"))
    assert ran.returncode == 0, ran.stderr
    assert yaml.safe_load(ran.stdout)["kind"] == "PaddleJob"
    for line in ran.stderr.splitlines():
        assert line.startswith("note: ")
        assert f"# {line[6:]}\n" in ran.stdout


def test_other_objects_of_the_file_stay_and_the_result_is_a_job_that_validates(tmp_path: Path):
    result = tmp_path / "job.yaml"
    ran = pdj("convert", str(EXAMPLES / "paddle-indexed-job.yaml"), "-o", str(result))
    assert ran.returncode == 0, ran.stderr
    assert [one["kind"] for one in yaml.safe_load_all(result.read_text())] == ["Service", "PaddleJob"]
    assert "good (paddle-cluster-job)" in pdj("validate", str(result)).stdout


def test_a_file_with_nothing_to_convert_is_refused_with_what_can_be():
    ran = pdj("convert", str(EXAMPLES / "paddle-data-job.yaml"))
    assert ran.returncode == 2
    assert ran.stderr.startswith("pdj: batch/v1 Job: is no job that can be converted")
