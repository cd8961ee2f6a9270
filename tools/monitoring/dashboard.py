"""The Grafana dashboard: rows of panels over the operator's metrics."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paddlejob.operator.metrics import definitions as metric
from tools.monitoring.alerts import quantile

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
HEIGHT, WIDTH = 8, 12
OF_JOBS = '{namespace=~"$namespace", job=~"$job"}'


@dataclass(frozen=True)
class Panel:
    """One diagram; `queries` maps legends to expressions."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    stacked: bool = False
    description: str = ""


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


ROWS = (
    Row(
        "Jobs",
        (
            Panel("Jobs by phase", {"{{phase}}": f"sum by (phase) ({metric.JOBS})"}, stacked=True),
            Panel(
                "Leader",
                {"{{pod}}": f"{metric.LEADER}", "version {{version}}": f"sum by (version) ({metric.BUILD_INFO})"},
                description=metric.LEADER.help,
            ),
        ),
    ),
    Row(
        "Reconciliation",
        (
            Panel("Jobs in the queue", {"depth": f"sum({metric.QUEUE_DEPTH})"}),
            Panel(
                "Wait in the queue",
                {"p50": quantile(0.5, metric.QUEUE_WAIT), "p99": quantile(0.99, metric.QUEUE_WAIT)},
                "s",
                description=metric.QUEUE_WAIT.help,
            ),
            Panel(
                "Duration",
                {"p50": quantile(0.5, metric.RECONCILE), "p99": quantile(0.99, metric.RECONCILE)},
                "s",
                description=metric.RECONCILE.help,
            ),
            Panel(
                "Reconciliations and errors",
                {
                    "reconciliations": f"sum(rate({metric.RECONCILE}_count[5m]))",
                    "errors": f"sum(rate({metric.RECONCILE_ERRORS}[5m]))",
                },
                "ops",
            ),
        ),
    ),
    Row(
        "API server",
        (
            Panel(
                "Requests by verb and resource",
                {"{{verb}} {{resource}}": f"sum by (verb, resource) (rate({metric.API_REQUESTS}[5m]))"},
                "reqps",
                stacked=True,
            ),
            Panel(
                "Failed requests by code",
                {"{{code}}": f'sum by (code) (rate({metric.API_REQUESTS}{{code!~"2.."}}[5m]))'},
                "reqps",
                description="404 and 409 are part of normal work; code 0 means that no response arrived.",
            ),
            Panel(
                "Latency, p99 by verb",
                {"{{verb}}": quantile(0.99, metric.API_LATENCY, by="verb")},
                "s",
                description=metric.API_LATENCY.help,
            ),
            Panel("Events dropped", {"events": f"sum(increase({metric.EVENTS_DROPPED}[5m]))"}),
        ),
    ),
    Row(
        "Caches",
        (
            Panel("Objects", {"{{resource}}": f"sum by (resource) ({metric.INFORMER_OBJECTS})"}),
            Panel(
                "Age",
                {"{{resource}}": f"max by (resource) ({metric.INFORMER_AGE})"},
                "s",
                description=metric.INFORMER_AGE.help,
            ),
            Panel(
                "Failing for",
                {"{{resource}}": f"max by (resource) ({metric.INFORMER_FAILING})"},
                "s",
                description=metric.INFORMER_FAILING.help,
            ),
            Panel(
                "Failed lists and watches",
                {"{{resource}}": f"sum by (resource) (increase({metric.INFORMER_ERRORS}[5m]))"},
            ),
        ),
    ),
    Row(
        "Each job (needs --job-metrics)",
        (
            Panel(
                "Goodput",
                {"{{namespace}}/{{job}}": f"{metric.GOODPUT}{OF_JOBS}"},
                "percentunit",
                False,
                metric.GOODPUT.help,
            ),
            Panel(
                "Progress",
                {"{{namespace}}/{{job}}": f"{metric.JOB_STEP}{OF_JOBS} / {metric.JOB_STEPS}{OF_JOBS}"},
                "percentunit",
            ),
            Panel("Restarts", {"{{namespace}}/{{job}}": f"{metric.JOB_RESTARTS}{OF_JOBS}"}),
            Panel(
                "Time since the last output",
                {"{{namespace}}/{{job}}": f"{metric.JOB_OUTPUT_AGE}{OF_JOBS}"},
                "s",
                description=metric.JOB_OUTPUT_AGE.help,
            ),
        ),
    ),
)


def dashboard() -> str:
    document = {
        "uid": "paddlejob",
        "title": "PaddleJob",
        "tags": ["paddlejob"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source(), _variable("namespace", ""), _variable("job", '{namespace=~"$namespace"}')]},
        "panels": list(_panels()),
    }
    return json.dumps(document, indent=2) + "\n"


def _panels() -> Iterator[dict[str, Any]]:
    numbers = itertools.count(1)
    top = 0
    for row in ROWS:
        yield {
            "id": next(numbers),
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": 2 * WIDTH, "h": 1},
            "panels": [],
        }
        top += 1
        for index, panel in enumerate(row.panels):
            x, y = index % 2 * WIDTH, top + index // 2 * HEIGHT
            yield _panel(next(numbers), panel, {"x": x, "y": y, "w": WIDTH, "h": HEIGHT})
        top += (len(row.panels) + 1) // 2 * HEIGHT


def _panel(number: int, panel: Panel, position: dict[str, int]) -> dict[str, Any]:
    custom = {"fillOpacity": 10, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
            for index, (legend, expr) in enumerate(panel.queries.items())
        ],
    }


def _source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(label: str, selector: str) -> dict[str, Any]:
    """A choice of the values of a label of jobs; all of them at first."""
    query = f"label_values({metric.JOB_RESTARTS}{selector}, {label})"
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
