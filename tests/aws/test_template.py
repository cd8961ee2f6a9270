"""The template as it is sent: cfn-lint's schemas and rules on each kind of cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from paddlejob.cloud.aws import render
from paddlejob.cloud.aws.config import ClusterConfig

VARIANTS: dict[str, dict[str, Any]] = {
    "one zone": {},
    "two zones": {"availabilityZones": ["us-west-2a", "us-west-2b"]},
    "three zones": {"availabilityZones": ["us-west-2a", "us-west-2b", "us-west-2c"]},
    "spot": {"workerSpot": True},
    "gpu": {"workerInstanceType": "g4dn.xlarge", "workerDiskSize": 200},
    "own key": {"kmsKeyArn": "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"},
    "key pair": {"keyName": "my key"},
    "kept files": {"fileSystemId": "fs-2cbf7385", "kubernetesVersion": "1.33"},
}


def findings(template: str) -> list[str]:
    return [f"{found.rule.id} {found.message}" for found in lint(template, config=ManualArgs(regions=["us-west-2"]))]


@pytest.mark.parametrize("variant", VARIANTS)
def test_cfn_lint_finds_nothing(variant: str, configured: Callable[..., ClusterConfig]) -> None:
    template = render.template(render.parameters(configured(**VARIANTS[variant])))
    assert "@" not in template.split("Parameters:")[1].split("Conditions:")[0]
    assert findings(template) == []


def test_cfn_lint_would_find_a_fault(configured: Callable[..., ClusterConfig]) -> None:
    values = render.parameters(configured())
    assert findings(render.template({**values, "AmiType": "WINDOWS_95"}))
    assert findings(render.template(values).replace("!Ref Vpc\n", "!Ref Vcp\n", 1))


def test_it_is_small_enough_to_be_sent_as_text(configured: Callable[..., ClusterConfig]) -> None:
    assert len(render.template(render.parameters(configured())).encode()) < 51_200


def test_keeping_data_changes_the_file_system_and_the_bucket_only(configured: Callable[..., ClusterConfig]) -> None:
    before = render.template(render.parameters(configured())).splitlines()
    after = render.keeping_data("\n".join(before)).splitlines()
    changed = [number for number, line in enumerate(before) if line != after[number]]
    owners = [next(line for line in reversed(before[:number]) if line[2:3].isalpha()) for number in changed]
    assert owners == ["  FileSystem:", "  Bucket:"]
    assert findings("\n".join(after)) == []
