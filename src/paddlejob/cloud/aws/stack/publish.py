"""Upload of the template to a bucket of the user (`up --s3-uri`)."""

from __future__ import annotations

import re
from urllib.parse import quote

from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.templates.compose import Template
from paddlejob.errors import BadInput

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][-.a-z0-9]{1,61}[a-z0-9])(/(?P<prefix>.*))?")


def template_location(uri: str, cluster: str, file: str) -> tuple[str, str]:
    """Return bucket and key of a template: PREFIX/NAME/FILE."""
    found = _S3_URI.fullmatch(uri)
    if not found:
        raise BadInput(f"--s3-uri: {uri!r} is not an S3 URI; use s3://BUCKET/PREFIX")
    prefix = (found["prefix"] or "").strip("/")
    return found["bucket"], "/".join(part for part in (prefix, cluster, file) if part)


def to_s3(aws: Aws, uri: str, cluster: str, template: Template) -> dict[str, str]:
    """Upload the template. Returns the part of the stack request that refers to it."""
    bucket, key = template_location(uri, cluster, template.file)
    try:
        aws.call("s3", "put_object", Bucket=bucket, Key=key, Body=template.text.encode())
    except AwsError as error:
        if error.code == "NoSuchBucket":
            raise BadInput(
                f"--s3-uri: bucket {bucket} does not exist; create it in {aws.region}, or omit --s3-uri"
            ) from None
        raise
    suffix = "amazonaws.com.cn" if aws.region.startswith("cn-") else "amazonaws.com"
    return {"TemplateURL": f"https://{bucket}.s3.{aws.region}.{suffix}/{quote(key)}"}
