"""The manifests agree with the package and with the process that they run."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import yaml

import paddlejob
from paddlejob.kube.resource import LEASES
from paddlejob.operator.main import LEASE_NAME
from paddlejob.operator.manifests import IMAGE, NAME, manifests

CHART = Path(__file__).parents[3] / "deploy/chart/Chart.yaml"


def test_package_image_and_chart_have_one_version():
    chart = yaml.safe_load(CHART.read_text())
    found = {version("paddlejob"), IMAGE.rpartition(":")[2], chart["version"], chart["appVersion"]}
    assert found == {paddlejob.__version__}


def test_the_operator_may_update_the_lease_that_it_holds_and_no_other():
    role = next(one for one in manifests() if one["kind"] == "Role" and one["metadata"]["name"] == f"{NAME}-lease")
    updates = [rule for rule in role["rules"] if "update" in rule["verbs"]]
    assert [(rule["resources"], rule["resourceNames"]) for rule in updates] == [([LEASES.plural], [LEASE_NAME])]
