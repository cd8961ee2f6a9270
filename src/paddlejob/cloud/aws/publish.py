"""`up --s3-uri`: the template goes to a bucket of the user's first, as in the document."""

from __future__ import annotations

import re
from urllib.parse import quote

from paddlejob.errors import BadInput

from .refusals import Refused
from .session import Aws

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][-.a-z0-9]{1,61}[a-z0-9])(/(?P<prefix>.*))?")


def place(uri: str, cluster: str) -> tuple[str, str]:
    """Bucket and key of the template: PREFIX/NAME/stack.yaml."""
    found = _S3_URI.fullmatch(uri)
    if not found:
        raise BadInput(f"--s3-uri: is {uri!r}, no address in S3; write s3://BUCKET/PREFIX")
    prefix = (found["prefix"] or "").strip("/")
    return found["bucket"], "/".join(part for part in (prefix, cluster, "stack.yaml") if part)


def to_s3(aws: Aws, uri: str, cluster: str, template: str) -> dict[str, str]:
    """Put the template there. The part of the request that names it."""
    bucket, key = place(uri, cluster)
    try:
        aws.call("s3", "put_object", Bucket=bucket, Key=key, Body=template.encode())
    except Refused as no:
        if no.code == "NoSuchBucket":
            raise BadInput(
                f"--s3-uri: there is no bucket {bucket}; make it in {aws.region}, or leave --s3-uri out"
            ) from None
        raise
    suffix = "amazonaws.com.cn" if aws.region.startswith("cn-") else "amazonaws.com"
    return {"TemplateURL": f"https://{bucket}.s3.{aws.region}.{suffix}/{quote(key)}"}
