"""What the two images do: k8s_data prepares the volume; k8s_train also serves a job that was converted."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml

from tests.examples.roles import stage as job_stage
from tests.examples.roles import start_ps_job
from tests.launch.pods import EXAMPLES, JOB, START_PADDLE, get_data, stage
from tests.support.seeds import ABSENT, SEEDS

FILES = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "batch-job"


def test_the_data_job_makes_the_documents_tree(tmp_path: Path):
    with stage(tmp_path) as on:
        made = get_data(on, 3, 1000)
        assert made.returncode == 0, made.stderr
        directories = {str(path.relative_to(on.volume)) for path in on.volume.rglob("*") if path.is_dir()}
        parts = {f"{JOB}/{part}{end}" for part in range(3) for end in ("", "/data")}
        assert directories == {JOB, f"{JOB}/output", f"{JOB}/quick_start", *parts}
        program = {path.name for path in (on.job / "quick_start").iterdir()}
        assert program >= {"train.py", "process.py", "trainer_config.lr.py"}, "with the module of another example"
        counts = [len((on.job / str(part) / "data" / "reviews.txt").read_text().splitlines()) for part in range(3)]
        assert sorted(counts) == [333, 333, 334]
        assert get_data(on, 3, 1000).returncode == 0, "it may run again"
        assert "set OVERWRITE=1" in get_data(on, 2, 1000).stderr
        assert get_data(on, 2, 1000, OVERWRITE="1").returncode == 0


def test_data_of_ones_own_is_read_from_its_location(tmp_path: Path):
    source = tmp_path / "mine"
    source.mkdir()
    for number in range(4):
        (source / f"file-{number}").write_text(f"{number}\n")
    with stage(tmp_path) as on:
        made = get_data(on, 2, 0, DATA_URL=str(source), SPLIT_BY="files")
        assert made.returncode == 0, made.stderr
        assert sorted(path.name for path in on.job.glob("*/data/*")) == [f"file-{number}" for number in range(4)]


def test_missing_data_is_reported_in_one_line(tmp_path: Path):
    with stage(tmp_path) as on:
        made = get_data(on, 2, 0, DATA_URL=str(tmp_path / "nothing"))
        assert made.returncode == 1
        assert "nothing" in made.stderr and "Traceback" not in made.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"SPLIT_COUNT": "0"}, "SPLIT_COUNT: 0 is not valid; set it to a whole number, 1 or more"),
        ({"SPLIT_COUNT": ""}, "SPLIT_COUNT: not set; set it in the Job's env"),
        ({"SAMPLES": "many"}, "SAMPLES: many is not valid; set it to a whole number, 1 or more"),
        ({"SPLIT_BY": "luck"}, "use lines, files or bytes"),
        ({"OUT_DIR": "/dev/null/job"}, "get_data: /dev/null/job: cannot write: [Errno 20] Not a directory"),
    ],
)
def test_an_error_is_one_line_and_leaves_no_files(given: dict[str, str], expected: str, tmp_path: Path):
    with stage(tmp_path) as on:
        made = get_data(on, 2, 100, **given)
        assert made.returncode == 1
        assert expected in made.stderr
        assert len(made.stderr.splitlines()) == 1
        assert [path for path in on.volume.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("mounted", "warned"), [("/mnt", True), ("/home/work/mfs", False)])
def test_a_directory_that_is_not_on_a_volume_is_a_warning(
    mounted: str, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """As in document 004, which mounts /mnt and writes to /home/work/mfs."""
    spec = importlib.util.spec_from_file_location("get_data", EXAMPLES / "k8s_data" / "get_data.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "mount_points", lambda: {"/", mounted})
    module.warn_without_volume(Path("/home/work/mfs/paddle-cluster-job"))
    assert ("is not on a volume" in capsys.readouterr().out) == warned


@pytest.mark.full
def test_a_converted_job_runs_in_the_same_image_with_the_operators_environment(tmp_path: Path):
    with stage(tmp_path, trainers=2) as on:
        get_data(on, 2, 1000).check_returncode()
        variables = {"JOB_NAME": JOB, "JOB_PATH": str(on.volume), "TRAIN_CONFIG_DIR": "quick_start"}
        with job_stage(tmp_path / "job", START_PADDLE, "--num_passes=2", **variables) as job:
            servers, workers = start_ps_job(job)
            assert [worker.wait() for worker in workers] == [0, 0], workers[0].text
            assert "read 500 reviews: 0-499" in workers[0].text
            assert "read 500 reviews: 500-999" in workers[1].text
            assert (on.job / "output" / "pass-00001" / "done").exists()
            for server in servers:
                assert server.process.poll() is None, "the operator stops servers, not the launcher"
                server.process.terminate()
                assert server.wait() == 143
    assert "is listening on" in (on.job / "output" / "node_1" / "server.log").read_text()


@pytest.mark.skipif(not SEEDS.is_dir(), reason=ABSENT)
@pytest.mark.parametrize(
    ("file", "document"),
    [
        ("paddle-data-job.yaml", "003"),
        ("paddle-cluster-job.yaml", "003"),
        ("hostpath-data-job.yaml", "004"),
        ("hostpath-cluster-job.yaml", "004"),
    ],
)
def test_the_examples_are_the_documents_jobs_exactly(file: str, document: str):
    (job,) = yaml.safe_load_all((FILES / file).read_text())
    assert job in _jobs_of(document)


def _jobs_of(document: str) -> list[dict[str, object]]:
    """Every batch/v1 Job of a document; [YOUR_REPO] gets a name, as the document asks."""
    (text,) = (path.read_text(encoding="utf-8") for path in SEEDS.glob(f"{document}_*.txt"))
    lines = text.replace("[YOUR_REPO]", "example").splitlines()
    found = []
    for start, line in enumerate(lines):
        if line.strip() != "apiVersion: batch/v1":
            continue
        margin = line.index("apiVersion")
        taken = []
        for one in lines[start:]:
            taken.append(one[margin:])
            if one.strip() == "restartPolicy: Never":
                break
        found.append(yaml.safe_load("\n".join(taken)))
    return found
