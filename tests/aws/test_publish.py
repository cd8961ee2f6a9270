"""Where `up --s3-uri` puts the template, and the address that CloudFormation reads it from."""

from __future__ import annotations

import pytest
from botocore.stub import Stubber

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.publish import template_location, to_s3
from paddlejob.cloud.aws.templates.compose import Template
from paddlejob.errors import BadInput, NotPossible

TEMPLATE = Template("stack.yaml", "Resources: {}", {})


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        ("s3://my-templates", "paddle/stack.yaml"),
        ("s3://my-templates/", "paddle/stack.yaml"),
        ("s3://my-templates/prefix", "prefix/paddle/stack.yaml"),
        ("s3://my-templates/a/b/", "a/b/paddle/stack.yaml"),
    ],
)
def test_the_template_is_below_the_prefix_and_the_name_of_the_cluster(uri: str, key: str) -> None:
    assert template_location(uri, "paddle", "stack.yaml") == ("my-templates", key)


@pytest.mark.parametrize("uri", ["my-templates", "https://my-templates", "s3://", "s3://My_Templates/x", "s3://ab"])
def test_what_is_no_address_of_a_bucket_is_rejected(uri: str) -> None:
    with pytest.raises(BadInput, match="is not an S3 URI; use s3://BUCKET/PREFIX"):
        template_location(uri, "paddle", "stack.yaml")


@pytest.mark.parametrize(("region", "domain"), [("us-west-2", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn")])
def test_cloudformation_reads_it_in_the_domain_of_the_partition_with_spaces_quoted(region: str, domain: str) -> None:
    aws = Aws(region)
    with Stubber(aws.client("s3")) as s3:
        sent = {"Bucket": "my-templates", "Key": "my prefix/paddle/stack.yaml", "Body": b"Resources: {}"}
        s3.add_response("put_object", {}, sent)
        found = to_s3(aws, "s3://my-templates/my prefix", "paddle", TEMPLATE)
    assert found == {"TemplateURL": f"https://my-templates.s3.{region}.{domain}/my%20prefix/paddle/stack.yaml"}


def test_a_bucket_of_others_is_not_said_to_be_missing() -> None:
    aws = Aws("us-west-2")
    with Stubber(aws.client("s3")) as s3:
        s3.add_client_error("put_object", "AccessDenied", "no")
        with pytest.raises(NotPossible, match=r"AWS denied s3:put_object: no; `pdj aws policy` prints"):
            to_s3(aws, "s3://my-templates", "paddle", TEMPLATE)
