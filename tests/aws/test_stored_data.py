"""What `destroy` says of the data before it is lost: how much there is, and nothing of what is gone already."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.data import empty_bucket, stored_data


@pytest.fixture
def aws() -> Aws:
    return Aws("us-west-2")


def file_system(size: int) -> dict[str, Any]:
    return {
        "OwnerId": "123456789012",
        "CreationToken": "x",
        "FileSystemId": "fs-01234567",
        "CreationTime": 0,
        "LifeCycleState": "available",
        "NumberOfMountTargets": 0,
        "SizeInBytes": {"Value": size},
        "PerformanceMode": "generalPurpose",
        "Tags": [],
    }


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (6 * 1024, "6 KiB"),
        (5 * 1024**2 + 512 * 1024, "5.5 MiB"),
        (1024**3, "1 GiB"),
        (3 * 1024**4, "3 TiB"),
        (2048 * 1024**4, "2048 TiB"),
    ],
)
def test_the_size_of_the_files_is_shown_in_the_unit_that_fits(aws: Aws, size: int, text: str) -> None:
    with Stubber(aws.client("efs")) as efs:
        efs.add_response("describe_file_systems", {"FileSystems": [file_system(size)]}, {"FileSystemId": "fs-01234567"})
        assert stored_data(aws, {"FileSystem": "fs-01234567"}) == [f"file system fs-01234567 ({text})"]


@pytest.mark.parametrize(("more", "text"), [(False, "1000 objects"), (True, "1000 or more objects")])
def test_objects_are_counted_as_far_as_one_request_goes(aws: Aws, more: bool, text: str) -> None:
    with Stubber(aws.client("s3")) as s3:
        asked = {"Bucket": "data", "MaxKeys": 1000}  # S3 lists no more at once
        s3.add_response("list_objects_v2", {"KeyCount": 1000, "IsTruncated": more}, asked)
        assert stored_data(aws, {"Bucket": "data"}) == [f"bucket data ({text})"]


@pytest.mark.usefixtures("made")
def test_data_that_somebody_deleted_by_hand_is_not_in_the_way_of_the_rest(aws: Aws) -> None:
    gone = {"FileSystem": "fs-01234567", "Bucket": "paddle-cluster-data-bucket-1"}
    assert stored_data(aws, gone) == []
    said: list[str] = []
    empty_bucket(aws, gone["Bucket"], said.append)
    assert said == []


def test_without_data_nothing_is_asked(aws: Aws) -> None:
    with Stubber(aws.client("efs")), Stubber(aws.client("s3")):
        assert stored_data(aws, {"JobRole": "role"}) == []
