"""Ctrl-C loses nothing, and the message says what continues and how to resume. The signal is a real one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app

from .aws_state import client, outputs
from .kinds import Pdj

pytestmark = pytest.mark.usefixtures("made", "initialised")
CONTINUES = "CloudFormation continues with paddle-cluster; run the same command again to follow it"
DATA_CONTINUES = CONTINUES.replace("paddle-cluster", "paddle-cluster-data")
STOPPED = "Interrupted; no CloudFormation operation is running on paddle-cluster. Run the same command again to resume."


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Run a verb and send SIGINT when it calls the named function. What has happened by then stays."""

    def press(*_: object, **__: object) -> Any:
        signal.raise_signal(signal.SIGINT)

    def run(function: str, *arguments: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(f"paddlejob.cloud.aws.{function}", press)
            result = CliRunner().invoke(app, [*arguments, "--assets", str(tmp_path)])
        assert result.exit_code == 130
        assert "Traceback" not in result.output
        return result

    # Python installs no handler for SIGINT if it was started with the signal ignored, as under nohup.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGINT, before)


FOLLOWING = "stack.stack.Stack._poll_with_retries"


@pytest.mark.parametrize("function", ["stack.stack.Stack.follow", FOLLOWING])
def test_once_the_creation_is_requested_it_continues_and_up_again_follows_it(
    interrupted: Any, pdj: Pdj, function: str
) -> None:
    assert DATA_CONTINUES in interrupted(function, "up").output
    assert client("cloudformation").describe_stacks(StackName="paddle-cluster-data")
    assert "Cluster paddle-cluster is up.\n" in pdj("up")
    pdj("destroy", "--keep-data")
    assert CONTINUES in interrupted(function, "up").output
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]
    assert "Cluster paddle-cluster is up. No changes needed." in pdj("up")


@pytest.mark.parametrize("function", ["checks.zones_of", "stack.up.second_zone"])
def test_before_anything_was_sent_nothing_is_at_work(interrupted: Any, function: str) -> None:
    assert STOPPED in interrupted(function, "up").output
    assert client("cloudformation").describe_stacks()["Stacks"] == []


def test_while_scale_waits_the_number_is_already_written_down(interrupted: Any, pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    assert CONTINUES in interrupted(FOLLOWING, "scale", "3").output
    assert "\nworkerCount: 3\n" in (tmp_path / "cluster.yaml").read_text(), "else the next `up` would take it back"
    pdj("up")
    (group,) = client("eks").list_nodegroups(clusterName="paddle-cluster")["nodegroups"]
    found = client("eks").describe_nodegroup(clusterName="paddle-cluster", nodegroupName=group)["nodegroup"]
    assert found["scalingConfig"]["desiredSize"] == 3


def test_the_deletion_continues_when_destroy_is_interrupted(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    assert CONTINUES in interrupted(FOLLOWING, "destroy", "--yes").output
    assert client("eks").list_clusters()["clusters"] == []
    pdj("destroy", "--yes")
    assert "Nothing to destroy" in pdj("destroy")


def test_the_data_still_exists_while_the_bucket_is_emptied(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    assert STOPPED in interrupted("stack.data._next_batch", "destroy", "--yes").output
    assert client("s3").get_object(Bucket=outputs()["BucketName"], Key="model")
    assert "Cluster paddle-cluster deleted." in pdj("destroy", "--yes")


def test_before_the_deletion_the_data_is_safe(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    bucket = outputs()["BucketName"]
    client("s3").put_object(Bucket=bucket, Key="model", Body=b"weights")
    assert STOPPED in interrupted("stack.stack.Stack.delete", "destroy", "--keep-data").output
    assert "Cluster paddle-cluster deleted." in pdj("destroy", "--keep-data")
    assert client("s3").get_object(Bucket=bucket, Key="model")["Body"].read() == b"weights"


def test_while_destroy_looks_around_nothing_was_deleted(interrupted: Any, pdj: Pdj) -> None:
    pdj("up")
    assert STOPPED in interrupted("stack.destroy.blockers", "destroy").output
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]
