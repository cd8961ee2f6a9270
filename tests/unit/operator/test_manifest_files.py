"""The operator's manifests in the repository are the ones that the code makes."""

from __future__ import annotations

from pathlib import Path

import yaml

from paddlejob.operator.manifests import LEASE_RULES, RULES, manifests

ROOT = Path(__file__).parents[3]


def stored(file: str) -> list[object]:
    return list(yaml.safe_load_all((ROOT / file).read_text()))


def test_the_manifests_are_current():
    assert stored("deploy/v1/operator.yaml") == manifests(), "run `make generate`"


def test_the_rules_of_the_chart_are_current():
    assert stored("deploy/chart/files/rules.yaml") == [RULES]
    assert stored("deploy/chart/files/lease-rules.yaml") == [LEASE_RULES]
