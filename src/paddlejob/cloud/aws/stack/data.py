"""The data in the cluster's file system and bucket: what there is, and how it is deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible

_BATCH_SIZE = 1000  # the most that S3 deletes in one request


def stored_data(aws: Aws, resources: Mapping[str, str]) -> list[str]:
    """Describe the file system and the bucket of the stack, with how much they contain."""
    found = []
    if files := resources.get("FileSystem"):
        found += _file_system(aws, files)
    if bucket := resources.get("Bucket"):
        found += _bucket(aws, bucket)
    return found


def empty_bucket(aws: Aws, bucket: str, say: Callable[[str], None]) -> None:
    """Delete all objects and versions; CloudFormation deletes only empty buckets."""
    removed = 0
    while batch := _next_batch(aws, bucket):
        answer = aws.call("s3", "delete_objects", Bucket=bucket, Delete={"Objects": batch, "Quiet": True})
        _raise_if_rejected(bucket, answer.get("Errors", []))
        removed += len(batch)
        say(f"bucket {bucket}: {removed} objects deleted")


def _raise_if_rejected(bucket: str, errors: list[dict[str, str]]) -> None:
    """S3 answers 200 even if it rejects each of the keys, which would then be listed again for ever."""
    if not errors:
        return
    first = errors[0]
    raise NotPossible(
        f"bucket {bucket}: S3 rejected the deletion of {len(errors)} objects, such as {first.get('Key')}: "
        f"{first.get('Message')} ({first.get('Code')}); delete them in S3, then run the same command again"
    )


def _next_batch(aws: Aws, bucket: str) -> list[dict[str, str]]:
    page = aws.find("s3", "list_object_versions", "NoSuchBucket", Bucket=bucket, MaxKeys=_BATCH_SIZE) or {}
    versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in versions]


def _file_system(aws: Aws, name: str) -> list[str]:
    found = aws.find("efs", "describe_file_systems", "FileSystemNotFound", FileSystemId=name) or {"FileSystems": []}
    return [f"file system {name} ({_format_size(item['SizeInBytes']['Value'])})" for item in found["FileSystems"]]


def _bucket(aws: Aws, name: str) -> list[str]:
    page = aws.find("s3", "list_objects_v2", "NoSuchBucket", Bucket=name, MaxKeys=_BATCH_SIZE)
    if page is None:
        return []
    count = f"{page['KeyCount']}{' or more' if page.get('IsTruncated') else ''} objects"
    return [f"bucket {name} ({count})"]


def _format_size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.4g} TiB"
