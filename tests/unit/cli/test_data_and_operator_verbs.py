"""`pdj data` with real files, and the options that `pdj operator` hands to the controller."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob.kube.access import Access
from paddlejob.operator.main import Options
from tests.support.called_pdj import pdj


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("a\nb\nc\nd\ne\n")
    return tmp_path


def contents(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.rglob("*.txt"))]


def test_parts_are_listed_with_their_records_and_bytes_and_a_second_split_changes_none(lines: Path):
    arguments = ("data", "split", "in.txt", "out", "--parts", "2")
    done = pdj(*arguments, folder=lines)
    assert done.stdout.splitlines() == ["out/0/data  2 lines  4 bytes", "out/1/data  3 lines  6 bytes"], done.stderr
    again = pdj(*arguments, folder=lines)
    assert [line.endswith("  (unchanged)") for line in again.stdout.splitlines()] == [True, True]


def test_programs_can_read_what_was_split(lines: Path):
    split = json.loads(pdj("data", "split", "in.txt", "out", "--parts", "2", "-o", "json", folder=lines).stdout)
    assert [part["records"] for part in split["parts"]] == [2, 3]
    assert split["kept"] == []
    again = json.loads(pdj("data", "split", "in.txt", "out", "--parts", "2", "-o", "json", folder=lines).stdout)
    assert again["kept"] == [0, 1]


@pytest.mark.parametrize(
    ("option", "records"), [(("--header",), [2, 2]), (("--header-lines", "3"), [1, 1]), ((), [2, 3])]
)
def test_the_header_of_a_file_is_no_record(lines: Path, option: tuple[str, ...], records: list[int]):
    done = pdj("data", "split", "in.txt", "out", "--parts", "2", *option, "-o", "json", folder=lines)
    assert [part["records"] for part in json.loads(done.stdout)["parts"]] == records


def test_staged_files_are_counted_and_a_second_copy_changes_none(lines: Path):
    first = pdj("data", "stage", "in.txt", "here", folder=lines)
    assert first.stdout == "here  1 files  10 bytes  (0 unchanged)\n", first.stderr
    assert contents(lines / "here") == ["a\nb\nc\nd\ne\n"]
    assert pdj("data", "stage", "in.txt", "here", folder=lines).stdout == "here  1 files  10 bytes  (1 unchanged)\n"
    found = json.loads(pdj("data", "stage", "in.txt", "here", "-o", "json", folder=lines).stdout)
    assert (len(found["files"]), found["kept"]) == (1, ["in.txt"])


def test_on_a_terminal_each_step_has_a_bar_with_its_bytes(lines: Path, monkeypatch: pytest.MonkeyPatch):
    screen = io.StringIO()
    terminal = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True, unfiltered=screen))
    monkeypatch.setattr("paddlejob.cli.verbs.data.sys", terminal)
    done = pdj("data", "split", "in.txt", "out", "--parts", "2", folder=lines, COLUMNS="120")
    shown = screen.getvalue().splitlines()
    assert len(shown) == len({line.split()[0] for line in shown}) >= 1, "one bar for each step"
    assert all("10/10 bytes" in line and "━━━" in line and "0:00:00" in line for line in shown), shown
    assert done.stdout.startswith("out/0/data")


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the verb looks up and starts."""
    got: list[Any] = []

    def find(kubeconfig: str | None, context: str | None) -> Access:
        got.append((kubeconfig, context))
        return Access("http://server")

    async def run(access: Access, options: Options) -> None:
        got.extend((access.server, options))

    monkeypatch.setattr("paddlejob.kube.access.find_access", find)
    monkeypatch.setattr("paddlejob.operator.main.run", run)
    monkeypatch.setattr("paddlejob.operator.log_format.set_up_logs", got.append)
    return got


def test_the_controller_watches_all_namespaces_by_default(controller: list[Any]):
    assert pdj("operator").returncode == 0
    assert controller == [
        "json",
        (None, None),
        "http://server",
        Options(namespace=None, leader_elect=False, metrics=":8080", probes=":8081", lease_seconds=15.0),
    ]


def test_every_option_reaches_the_controller(controller: list[Any]):
    done = pdj(
        *("operator", "--namespace", "team", "--leader-elect", "--leader-namespace", "own", "--lease-seconds", "1"),
        *("--metrics-bind-address", ":1", "--metrics-auth", "--metrics-certificate", "/c", "--job-metrics"),
        *("--health-probe-bind-address", ":2", "--kubeconfig", "/k", "--context", "west", "--no-read-logs"),
        *("--log-format", "text"),
    )
    assert done.returncode == 0, done.stderr
    assert controller == [
        "text",
        ("/k", "west"),
        "http://server",
        Options(
            namespace="team",
            leader_elect=True,
            leader_namespace="own",
            metrics=":1",
            probes=":2",
            lease_seconds=1.0,
            read_logs=False,
            job_metrics=True,
            metrics_auth=True,
            metrics_certificate="/c",
        ),
    ]


def test_a_lease_of_less_than_a_second_is_rejected(controller: list[Any]):
    done = pdj("operator", "--lease-seconds", "0.5")
    assert (done.returncode, done.stderr) == (2, "pdj: --lease-seconds 0.5: use 1 or more\n")
    assert controller == []
