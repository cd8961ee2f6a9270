"""Alert rules and the dashboard query what the operator exposes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from paddlejob.operator.metrics.definitions import METRICS, Kind, Metric
from tools.monitoring.alerts import ALERTS, Alert, rules
from tools.monitoring.dashboard import dashboard

BY_SERIES: dict[str, Metric] = {series: one for one in METRICS for series in one.series}
TARGET_LABELS = {"namespace", "pod"}
"""Prometheus adds them to every series that it scrapes from a pod."""
SELECTION = re.compile(r"(paddlejob_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)\s*[=!]")
GROUPING = re.compile(r"by \(([^)]*)\)")


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(dashboard())["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    variables = [one["query"]["query"] for one in json.loads(dashboard())["templating"]["list"] if "datasource" in one]
    of_panels = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [*(alert.expr for alert in ALERTS), *of_panels, *variables]


@pytest.mark.parametrize("query", queries())
def test_a_query_names_only_metrics_and_labels_that_exist(query: str):
    selections = SELECTION.findall(query)
    assert selections
    known = {"le"}
    for series, selector in selections:
        assert series in BY_SERIES, f"{series} is not exposed"
        labels = {*BY_SERIES[series].labels, *TARGET_LABELS}
        assert set(LABEL.findall(selector)) <= labels
        known |= labels
    for grouping in GROUPING.findall(query):
        assert {label.strip() for label in grouping.split(",")} <= known


def test_every_metric_is_on_the_dashboard():
    shown = {
        series for panel in panels() for target in panel["targets"] for series, _ in SELECTION.findall(target["expr"])
    }
    assert {one.name for one in METRICS} == {BY_SERIES[series].name for series in shown}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_says_what_happened_and_what_to_do_with_labels_that_its_query_has(alert: Alert):
    metrics = [BY_SERIES[series] for series, _ in SELECTION.findall(alert.expr)]
    named = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.action))
    assert named <= set(metrics[0].labels)
    assert alert.summary.endswith(".") and alert.action.endswith(".")
    assert alert.severity in ("critical", "warning", "info")


@pytest.mark.parametrize("alert", [one for one in ALERTS if "quantile" in one.expr], ids=lambda alert: alert.name)
def test_a_threshold_is_below_the_last_bucket(alert: Alert):
    """A quantile is never above it, so an alert on a higher value would never fire."""
    ((series, _),) = SELECTION.findall(alert.expr)
    threshold = float(alert.expr.rpartition("> ")[2])
    assert BY_SERIES[series].kind is Kind.HISTOGRAM
    assert threshold in BY_SERIES[series].buckets[:-1], "exact only at the bound of a bucket"


def test_panels_have_numbers_of_their_own_and_do_not_overlap():
    made = json.loads(dashboard())["panels"]
    assert len({panel["id"] for panel in made}) == len(made)
    covered: set[tuple[int, int]] = set()
    for panel in made:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & covered, panel["title"]
        covered |= cells


def test_alerts_have_names_of_their_own():
    names = [rule["alert"] for group in rules()["groups"] for rule in group["rules"]]
    assert len(set(names)) == len(names) == len(ALERTS)
