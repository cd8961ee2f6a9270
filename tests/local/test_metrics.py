"""`pdj metrics` on this machine: the series of all attempts, as it was recorded during real runs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

from tests.support.pdj import Pdj

TRAINS = """
import os, sys
attempt = 1 if not os.path.exists("marker") else 2
open("marker", "w").close()
for step in range(10 if attempt == 1 else 20, 50, 10):
    print(f"step {step}/40 loss={1 / step:.3f} acc={step / 100} worker={os.environ['PADDLE_TRAINER_ID']}", flush=True)
    if attempt == 1 and step == 20:
        print("loss: nan", flush=True)
        sys.exit(3)
"""


def trained(pdj: Pdj, **options: object) -> None:
    (pdj.folder / "train.py").write_text(TRAINS)
    done = pdj("run", pdj.write(command=["python", "train.py"], **options))
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_series_covers_all_attempts(pdj: Pdj):
    trained(pdj, progress={"metrics": ["acc"]})
    table = pdj("metrics", "job")
    assert table.returncode == 0, table.stderr
    header, *rows = [line.split() for line in table.stdout.splitlines()]
    assert header == ["TIME", "ATTEMPT", "STEP", "LOSS", "ACC"]
    assert [row[1:3] for row in rows if len(row) == 5] == [
        *(["1", "10/40"], ["1", "20/40"]),
        *(["2", "20/40"], ["2", "30/40"], ["2", "40/40"]),
    ]
    assert ["1", "nan"] in [row[1:] for row in rows]
    times = [datetime.fromisoformat(row[0]) for row in rows]
    assert times == sorted(times) and datetime.now(UTC) - times[0] < timedelta(minutes=5)


def test_the_series_can_be_read_by_programs(pdj: Pdj):
    trained(pdj)
    rows = list(csv.DictReader(io.StringIO(pdj("metrics", "job", "-o", "csv").stdout)))
    assert [row["step"] for row in rows if row["attempt"] == "2"] == ["20", "30", "40"]
    assert rows[0]["total_steps"] == "40" and rows[0]["loss"] == "0.1"
    series = json.loads(pdj("metrics", "job", "-o", "json").stdout, parse_constant=lambda name: 1 / 0)
    assert {row.pop("time") for row in series} == {row["time"] for row in rows}
    assert series[0] == {"attempt": 1, "step": 10, "total_steps": 40, "loss": 0.1}
    assert {"attempt": 1, "loss": "nan"} in series


def test_a_run_of_an_earlier_version_is_read_from_its_logs(pdj: Pdj):
    trained(pdj)
    recorded = pdj("metrics", "job", "-o", "json").stdout
    (pdj.folder_of("job").path / "metrics.jsonl").unlink()
    parsed = pdj("metrics", "job", "-o", "json").stdout
    without_times = [{name: value for name, value in row.items() if name != "time"} for row in json.loads(recorded)]
    assert json.loads(parsed) == without_times


def test_new_values_are_printed_until_the_job_ends(pdj: Pdj):
    slow = "import time\nfor step in range(1, 6): print('step', step, 'of 5', flush=True); time.sleep(0.3)"
    (pdj.folder / "slow.py").write_text(slow)
    assert pdj("run", "--detach", pdj.write(command=["python", "slow.py"])).returncode == 0
    followed = pdj("metrics", "job", "-f", "-o", "json")
    assert followed.returncode == 0, followed.stderr
    assert [json.loads(line)["step"] for line in followed.stdout.splitlines()] == [1, 2, 3, 4, 5]
    pdj.until("job", phase="Completed")


def test_a_log_without_progress_says_which_formats_are_known_and_how_to_set_a_pattern(pdj: Pdj):
    done = pdj("run", pdj.write(command=["bash", "-c", "echo hello; echo world"]))
    assert done.returncode == 0, done.stderr
    metrics = pdj("metrics", "job")
    assert metrics.returncode == 2
    assert "the log of job job shows no progress. Lines such as" in metrics.stderr
    assert "spec.progress.pattern" in metrics.stderr


def test_a_pattern_of_the_jobs_own_names_the_columns(pdj: Pdj):
    program = "for number in 1 2 3; do echo round $number error 0.$number; done"
    pattern = r"round (?P<step>\d+) error (?P<error>\S+)"
    pdj("run", pdj.write(command=["bash", "-c", program], progress={"pattern": pattern}))
    assert [line.split()[1:] for line in pdj("metrics", "job").stdout.splitlines()] == [
        *(["ATTEMPT", "STEP", "ERROR"], ["1", "1", "0.1"], ["1", "2", "0.2"], ["1", "3", "0.3"]),
    ]


def test_a_pattern_that_matches_nothing_is_named(pdj: Pdj):
    pdj("run", pdj.write(command=["echo", "step 1/2"], progress={"pattern": "round (?P<step>[0-9]+)"}))
    assert "spec.progress.pattern of job job matches no line of its log" in pdj("metrics", "job").stderr


def test_a_bad_pattern_is_rejected_before_anything_starts(pdj: Pdj):
    file = pdj.write(command=["true"], progress={"pattern": "step (?P<step>[0-9]+"})
    for verb in ("validate", "run"):
        done = pdj(verb, file)
        assert done.returncode == 2
        assert "spec.progress.pattern: missing ): " in done.stdout + done.stderr
    assert not pdj.folder_of("job").path.exists()


def test_a_table_cannot_be_followed(pdj: Pdj):
    assert "--follow cannot be used with a table; add -o csv or -o json" in pdj("metrics", "job", "-f").stderr
