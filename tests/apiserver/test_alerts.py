"""Prometheus' own promtool reads the rules, the dashboard's queries and the metrics, and fires every alert."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest

from paddlejob.kube.resource import PODS
from paddlejob.operator.metrics import Metrics
from testbed.build.binaries import binaries
from tools.monitoring.alerts import ALERTS
from tools.monitoring.dashboard import dashboard

pytestmark = pytest.mark.full

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "deploy/monitoring/alerts.yaml"
SLOW = {
    f'paddlejob_queue_wait_seconds_bucket{{le="{le}"}}': value
    for le, value in (("5.0", "0x120"), ("10.0", "0+9x120"), ("+Inf", "0+9x120"))
}
SLOW_WRITES = {
    f'paddlejob_api_request_seconds_bucket{{verb="create",resource="pods",le="{le}"}}': value
    for le, value in (("2.5", "0x120"), ("5.0", "0+9x120"), ("+Inf", "0+9x120"))
}
JOB = 'namespace="ml",job="mnist"'
STORIES: dict[str, dict[str, str]] = {
    "PaddleJobOperatorDown": {},
    "PaddleJobNoLeader": {'paddlejob_leader{namespace="paddle-system",pod="a"}': "0x120"},
    "PaddleJobOperatorBlind": {'paddlejob_informer_failing_seconds{resource="pods"}': "61x120"},
    "PaddleJobOperatorSlow": SLOW,
    "PaddleJobReconcileErrors": {"paddlejob_reconcile_errors_total": "0+1x120"},
    "PaddleJobApiErrors": {
        'paddlejob_api_requests_total{verb="get",resource="pods",code="200"}': "0+80x120",
        'paddlejob_api_requests_total{verb="get",resource="pods",code="429"}': "0+15x120",
        'paddlejob_api_requests_total{verb="get",resource="pods",code="0"}': "0+5x120",
    },
    "PaddleJobApiSlow": SLOW_WRITES,
    "PaddleJobEventsDropped": {"paddlejob_events_dropped_total": "0+1x120"},
    "PaddleJobUnreadable": {'paddlejob_jobs{phase="Unreadable"}': "1x120"},
    "PaddleJobNotPickedUp": {'paddlejob_jobs{phase="Unseen"}': "2x120"},
    "PaddleJobLowGoodput": {f"paddlejob_goodput_ratio{{{JOB}}}": "0.4x120"},
    "PaddleJobSilent": {f"paddlejob_job_output_age_seconds{{{JOB}}}": "2000x120"},
}
"""What Prometheus saw each minute for two hours before the alert fires."""
HEALTHY = {
    'paddlejob_build_info{version="1"}': "1x120",
    'paddlejob_leader{namespace="paddle-system",pod="a"}': "1x120",
    'paddlejob_leader{namespace="paddle-system",pod="b"}': "0x120",
    "paddlejob_reconcile_errors_total": "0+0x120",
    "paddlejob_events_dropped_total": "0x120",
    'paddlejob_informer_failing_seconds{resource="pods"}': "20x120",
    'paddlejob_jobs{phase="Unseen"}': "0x120",
    'paddlejob_jobs{phase="Unreadable"}': "0x120",
    'paddlejob_api_requests_total{verb="get",resource="pods",code="200"}': "0+80x120",
    'paddlejob_api_requests_total{verb="get",resource="pods",code="404"}': "0+20x120",
    'paddlejob_api_requests_total{verb="get",resource="pods",code="500"}': "0+1x120",
    **{f'paddlejob_queue_wait_seconds_bucket{{le="{le}"}}': "0+9x120" for le in ("0.1", "5.0", "10.0", "+Inf")},
    f"paddlejob_goodput_ratio{{{JOB}}}": "0.93x120",
    f"paddlejob_job_output_age_seconds{{{JOB}}}": "300x120",
}


@pytest.fixture(scope="module")
def promtool() -> Path:
    return binaries("promtool")["promtool"]


def accepted(promtool: Path, *arguments: str | Path, input: bytes = b"") -> str:
    done = subprocess.run([promtool, *arguments], input=input, capture_output=True)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode() + done.stderr.decode()


def test_the_rules_are_valid(promtool: Path):
    assert f"{len(ALERTS)} rules found" in accepted(promtool, "check", "rules", RULES)


def test_the_queries_of_the_dashboard_are_valid(promtool: Path, tmp_path: Path):
    panels = [panel for panel in json.loads(dashboard())["panels"] if panel["type"] != "row"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    # As recording rules, because promtool has no check for a query alone.
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(queries)} rules found" in accepted(promtool, "check", "rules", "--lint=none", file)


def test_the_metrics_follow_the_conventions(promtool: Path):
    metrics = Metrics(per_job=True)
    metrics.observe_request("create", PODS, 201, 0.1)
    metrics.observe_reconcile(0.1, 0.1)
    metrics.count_error()
    accepted(promtool, "check", "metrics", input=generate_latest(metrics.registry))


def test_every_alert_has_a_story():
    assert STORIES.keys() == {alert.name for alert in ALERTS}


def story(name: str, series: dict[str, str], fires: bool, at: str = "120m") -> dict[str, Any]:
    """A test of promtool: whether the alert fires for the labels that its expression leaves."""
    return {
        "name": f"{name} {'fires' if fires else 'does not fire'}",
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > 0 or vector(0)',
                "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": 1 if fires else 0}],
            }
        ],
    }


def test_every_alert_fires_when_it_should_and_not_while_all_is_well(promtool: Path, tmp_path: Path):
    stories = [story(name, series, fires=True) for name, series in STORIES.items()]
    stories += [story(alert.name, HEALTHY, fires=False) for alert in ALERTS]
    lasting = [alert for alert in ALERTS if alert.lasting]
    stories += [story(alert.name, STORIES[alert.name], fires=False, at="1m") for alert in lasting]
    file = tmp_path / "stories.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": stories}))
    assert "SUCCESS" in accepted(promtool, "test", "rules", file)
