"""The parameters of the stacks: what is guessed without AWS, what is kept, and what cost is computed from."""

from __future__ import annotations

import pytest
from cfnlint.decode.decode import decode_str

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.cost import idle_items
from paddlejob.cloud.aws.prices import Prices
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import StackState
from paddlejob.cloud.aws.stack.up import resolve_parameters
from paddlejob.cloud.aws.templates import render

from .kinds import Configured

KEY = "arn:aws:kms:us-west-2:123456789012:key/1"


@pytest.mark.parametrize(("zone", "second"), [("us-west-2a", "us-west-2b"), ("us-west-2c", "us-west-2a")])
def test_without_aws_the_second_zone_is_a_guess_that_differs_from_the_first(
    configured: Configured, zone: str, second: str
) -> None:
    config = configured(availabilityZones=[zone])
    found = render.parameters(config)
    assert (found["Zone1"], found["Zone2"], found["Zone3"]) == (zone, second, "")
    assert render.parameters(config, Zone2="us-west-2d")["Zone2"] == "us-west-2d"


def test_zones_that_the_user_lists_are_all_taken_in_their_order(configured: Configured) -> None:
    found = render.parameters(configured(availabilityZones=["us-west-2c", "us-west-2a"]))
    assert [found[f"Zone{number}"] for number in (1, 2, 3)] == ["us-west-2c", "us-west-2a", ""]


def test_without_aws_a_node_with_efa_has_one_interface_and_another_has_none(configured: Configured) -> None:
    near = configured(efa=True, workerInstanceType="p5.48xlarge")
    assert render.parameters(near)["EfaInterfaces"] == "1"
    assert render.parameters(near, EfaInterfaces="32")["EfaInterfaces"] == "32"
    assert render.parameters(configured())["EfaInterfaces"] == ""


def test_the_cost_of_a_cluster_is_that_of_what_is_deployed_and_not_of_the_file(configured: Configured) -> None:
    running = configured(workerCount=3, workerInstanceType="g4dn.xlarge", workerSpot=True, workerDiskSize=50)
    edited = configured(kmsKeyArn=KEY)
    found = render.as_deployed(edited, render.parameters(running))
    assert [item.what for item in idle_items(found, Prices())] == [item.what for item in idle_items(running, Prices())]
    own = configured(kmsKeyArn=KEY)
    assert render.as_deployed(configured(), render.parameters(own)).kms_key_arn == KEY


def test_a_cluster_with_auto_mode_has_no_nodes_to_take_the_cost_from(configured: Configured) -> None:
    config = configured(autoMode=True)
    assert render.as_deployed(config, render.cluster_template(config, values(config)).parameters) == config


def values(config: ClusterConfig) -> dict[str, str]:
    return render.parameters(config) | render.from_data({})


def test_each_template_says_what_it_is_and_declares_each_parameter_with_its_type(configured: Configured) -> None:
    attached = {"ClusterName": "theirs", "VpcId": "vpc-1", "SecurityGroup": "sg-1", **render.from_data({})}
    templates = [
        render.cluster_template(configured(), values(configured())),
        render.data_template("paddle-cluster"),
        render.attachment_template(attached, ["subnet-1"]),
    ]
    for template in templates:
        parsed = decode_str(template.text)[0]
        assert [*parsed][:3] == ["AWSTemplateFormatVersion", "Description", "Parameters"], "for whoever reads it"
        assert "created by paddlejob" in parsed["Description"]
        assert {*parsed["Parameters"]} == {*template.parameters}
    declared = decode_str(templates[0].text)[0]["Parameters"]
    numbers = {name for name, one in declared.items() if one["Type"] == "Number"}
    assert numbers == {"WorkerCount", "MaxWorkerCount", "DiskSize"}
    assert declared["ApiAccessCidrs"]["Type"] == "CommaDelimitedList"
    assert [template.file for template in templates] == ["stack.yaml", "data-stack.yaml", "attachment-stack.yaml"]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("path", ["", "/paddlejob/paddle-cluster/"])
def test_the_roles_of_a_cluster_that_exists_keep_their_path(configured: Configured, path: str) -> None:
    """Another path would replace the role of the control plane, and with it the cluster."""
    config = configured()
    deployed = {name: value for name, value in render.parameters(config).items() if name != "RolePath"}
    state = StackState(
        "id", "paddle-cluster", "CREATE_COMPLETE", {}, deployed | ({"RolePath": path} if path else {}), {}
    )
    values = resolve_parameters(Aws("us-west-2"), config, state)
    templates = render.cluster_template(config, values | render.from_data({})), render.data_template("c", path=path)
    roles = [
        one["Properties"]
        for template in templates
        for one in decode_str(template.text)[0]["Resources"].values()
        if one["Type"] == "AWS::IAM::Role"
    ]
    assert len(roles) == 5
    assert [("Path" in role) for role in roles] == [bool(path)] * 5
