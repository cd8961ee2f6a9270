"""`up --s3-uri`: the template goes to a bucket of the user's first, as in the document."""

from __future__ import annotations

import re

from paddlejob.errors import BadInput

from .session import Aws

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][-.a-z0-9]{1,61}[a-z0-9])(/(?P<prefix>.*))?")


def to_s3(aws: Aws, uri: str, name: str, template: str) -> dict[str, str]:
    """Put the template at PREFIX/NAME/stack.yaml. The part of the request that names it."""
    found = _S3_URI.fullmatch(uri)
    if not found:
        raise BadInput(f"--s3-uri: is {uri!r}, no address in S3; write s3://BUCKET/PREFIX")
    prefix = (found["prefix"] or "").strip("/")
    key = "/".join(part for part in (prefix, name, "stack.yaml") if part)
    aws.call("s3", "put_object", Bucket=found["bucket"], Key=key, Body=template.encode())
    suffix = "amazonaws.com.cn" if aws.region.startswith("cn-") else "amazonaws.com"
    return {"TemplateURL": f"https://{found['bucket']}.s3.{aws.region}.{suffix}/{key}"}
