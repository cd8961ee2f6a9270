"""Emptying the bucket before its stack is deleted; with a botocore client whose answers never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.data import empty_bucket
from paddlejob.errors import NotPossible

MOST = 5
Key = tuple[str, str]
Rejects = Callable[[str], str]


class Bucket:
    """Versions that S3 lists until they are deleted, and an error code for each key that it does not delete."""

    def __init__(self, aws: Aws, versions: list[Key], rejects: Rejects = lambda _: "", page: int = 1000) -> None:
        self.versions, self.rejects, self.page = versions, rejects, page
        self.deletions: list[list[Key]] = []
        events = aws.client("s3").meta.events
        events.register("before-call.s3.ListObjectVersions", self._list)
        events.register("before-parameter-build.s3.DeleteObjects", self._remember)
        events.register("before-call.s3.DeleteObjects", self._delete)

    def _list(self, **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        found = [{"Key": key, "VersionId": version} for key, version in self.versions[: self.page]]
        return _answer({"Versions": found[:1], "DeleteMarkers": found[1:]})

    def _remember(self, params: dict[str, Any], **_: Any) -> None:
        self.deletions.append([(one["Key"], one["VersionId"]) for one in params["Delete"]["Objects"]])

    def _delete(self, **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        assert len(self.deletions) < MOST, "the same keys are deleted again and again"
        asked = self.deletions[-1]
        rejected = [key for key, _ in asked if self.rejects(key)]
        self.versions = [one for one in self.versions if one not in asked or one[0] in rejected]
        return _answer({"Errors": [{"Key": key, "Code": self.rejects(key), "Message": "no"} for key in rejected]})


def _answer(parsed: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    return AWSResponse("", 200, {}, None), parsed


def test_keys_that_s3_rejects_for_ever_are_tried_once_and_named() -> None:
    aws = Aws("us-west-2")
    bucket = Bucket(aws, [("locked", "1")], lambda _: "AccessDenied")
    with pytest.raises(NotPossible) as rejected:
        empty_bucket(aws, "data", lambda _: None)
    assert len(bucket.deletions) == 1
    assert str(rejected.value) == (
        "bucket data: S3 rejected the deletion of 1 objects, such as locked: no (AccessDenied); delete them in S3, "
        "then run the same command again"
    )


def test_one_rejected_key_among_others_ends_it_too() -> None:
    aws = Aws("us-west-2")
    bucket = Bucket(aws, [("a", "1"), ("locked", "1"), ("z", "1")], lambda key: "InternalError" * (key == "locked"))
    with pytest.raises(NotPossible, match="1 objects, such as locked"):
        empty_bucket(aws, "data", lambda _: None)
    assert (len(bucket.deletions), bucket.versions) == (1, [("locked", "1")])


def test_all_versions_of_all_pages_are_deleted() -> None:
    aws = Aws("us-west-2")
    versions = [("model", "1"), ("model", "2"), ("log", "1")]
    bucket = Bucket(aws, versions, page=2)
    said: list[str] = []
    empty_bucket(aws, "data", said.append)
    assert bucket.deletions == [versions[:2], versions[2:]]
    assert said == ["bucket data: 2 objects deleted", "bucket data: 3 objects deleted"]
