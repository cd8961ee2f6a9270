"""What the cluster's file system and bucket hold, before it is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .refusals import Refused
from .session import Aws

HOLD_DATA = ("FileSystem", "Bucket")  # as the template names them
_A_BATCH = 1000  # as many as S3 deletes in one request


def holdings(aws: Aws, resources: Mapping[str, str]) -> list[str]:
    """The file system and the bucket that the stack made, with how much is in them."""
    found = []
    if files := resources.get("FileSystem"):
        found += _file_system(aws, files)
    if bucket := resources.get("Bucket"):
        found += _bucket(aws, bucket)
    return found


def empty(aws: Aws, bucket: str, say: Callable[[str], None]) -> None:
    """Delete every object and every version. CloudFormation deletes a bucket only when it is empty."""
    removed = 0
    while batch := _next_batch(aws, bucket):
        aws.call("s3", "delete_objects", Bucket=bucket, Delete={"Objects": batch, "Quiet": True})
        removed += len(batch)
        say(f"bucket {bucket}: {removed} objects deleted")


def _next_batch(aws: Aws, bucket: str) -> list[dict[str, str]]:
    try:
        page = aws.call("s3", "list_object_versions", Bucket=bucket, MaxKeys=_A_BATCH)
    except Refused as no:
        if no.code == "NoSuchBucket":
            return []
        raise
    versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in versions]


def _file_system(aws: Aws, name: str) -> list[str]:
    try:
        found = aws.call("efs", "describe_file_systems", FileSystemId=name)["FileSystems"]
    except Refused as no:
        if no.code == "FileSystemNotFound":
            return []
        raise
    return [f"file system {name} ({size(item['SizeInBytes']['Value'])})" for item in found]


def _bucket(aws: Aws, name: str) -> list[str]:
    try:
        page = aws.call("s3", "list_objects_v2", Bucket=name, MaxKeys=_A_BATCH)
    except Refused as no:
        if no.code == "NoSuchBucket":
            return []
        raise
    count = f"{page['KeyCount']}{' or more' if page.get('IsTruncated') else ''} objects"
    return [f"bucket {name} ({count})"]


def size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.4g} TiB"
