"""Ctrl-C: nothing is lost, and the message says what goes on and how to go on. The signal is a real one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app

from .asked import client, outputs

Pdj = Callable[..., str]
pytestmark = pytest.mark.usefixtures("made", "initialised")
GOES_ON = "CloudFormation goes on with paddle-cluster; run the same command again to follow it"
STOPPED = "stopped; CloudFormation is not at work on paddle-cluster: run the same command again to go on"


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a verb and press Ctrl-C the moment it comes to the named function; what has happened by then stays."""

    def press(*_: object, **__: object) -> Any:
        signal.raise_signal(signal.SIGINT)

    def run(place: str, *arguments: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(f"paddlejob.cloud.aws.{place}", press)
            result = CliRunner().invoke(app, [*arguments, "--assets", str(tmp_path)])
        assert result.exit_code == 130
        assert "Traceback" not in result.output
        return result

    return run


FOLLOWING = "stack.Stack._look_patiently"


@pytest.mark.parametrize("place", ["stack.Stack.follow", FOLLOWING])
def test_once_the_creation_is_asked_for_it_goes_on_and_up_again_follows_it(
    interrupted: Any, pdj: Pdj, place: str
) -> None:
    assert GOES_ON in interrupted(place, "up").output
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]
    assert "cluster paddle-cluster is up; nothing was to be changed" in pdj("up")


@pytest.mark.parametrize("place", ["checks.zones_of", "up.second_zone"])
def test_before_anything_was_sent_nothing_is_at_work(interrupted: Any, place: str) -> None:
    assert STOPPED in interrupted(place, "up").output
    assert client("cloudformation").describe_stacks()["Stacks"] == []


def test_while_scale_waits_the_number_is_already_written_down(interrupted: Any, pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    assert GOES_ON in interrupted(FOLLOWING, "scale", "3").output
    assert "\nworkerCount: 3\n" in (tmp_path / "cluster.yaml").read_text(), "else the next `up` would take it back"
    pdj("up")
    (group,) = client("eks").list_nodegroups(clusterName="paddle-cluster")["nodegroups"]
    found = client("eks").describe_nodegroup(clusterName="paddle-cluster", nodegroupName=group)["nodegroup"]
    assert found["scalingConfig"]["desiredSize"] == 3


def test_while_destroy_waits_the_deletion_goes_on(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    assert GOES_ON in interrupted(FOLLOWING, "destroy", "--yes").output
    assert "nothing to destroy" in pdj("destroy")


def test_while_the_bucket_is_emptied_the_cluster_stands(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    assert STOPPED in interrupted("data._next_batch", "destroy", "--yes").output
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]
    assert "is deleted" in pdj("destroy", "--yes")


def test_between_keeping_and_deleting_the_data_is_safe(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    bucket = outputs()["BucketName"]
    client("s3").put_object(Bucket=bucket, Key="model", Body=b"weights")
    assert STOPPED in interrupted("destroy.unprotect", "destroy", "--keep-data").output
    assert "is deleted" in pdj("destroy", "--keep-data")
    assert client("s3").get_object(Bucket=bucket, Key="model")["Body"].read() == b"weights"


def test_while_destroy_looks_around_nothing_was_deleted(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    assert STOPPED in interrupted("destroy.blockers", "destroy").output
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]
