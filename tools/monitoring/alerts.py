"""Alert rules for Prometheus: when they fire, what that means and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlejob.operator.metrics import definitions as metric
from paddlejob.operator.metrics.definitions import Metric

LABELS = {"app.kubernetes.io/name": "paddlejob", "control-plane": "controller-manager"}


@dataclass(frozen=True)
class Alert:
    name: str
    expr: str
    lasting: str
    """For how long the expression must hold; empty if the alert fires at once."""
    severity: str
    summary: str
    action: str
    """What to do."""

    @property
    def rule(self) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expr,
            **({"for": self.lasting} if self.lasting else {}),
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.action},
        }


def quantile(share: float, one: Metric, by: str = "", selector: str = "") -> str:
    """The time that this share of observations of the last five minutes did not exceed."""
    grouping = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({share:g}, sum by ({grouping}) (rate({one}_bucket{selector}[5m])))"


FAILED_REQUESTS = f'sum(rate({metric.API_REQUESTS}{{code=~"0|429|5.."}}[5m]))'
ALL_REQUESTS = f"sum(rate({metric.API_REQUESTS}[5m]))"
WRITES = '{verb=~"create|update|patch|delete"}'

OPERATOR = (
    Alert(
        "PaddleJobOperatorDown",
        f"absent({metric.BUILD_INFO})",
        "5m",
        "critical",
        "No PaddleJob operator is scraped.",
        "Jobs keep training, but failures are not handled and new jobs do not start. Check the operator's Deployment, "
        "and whether Prometheus may reach its metrics.",
    ),
    Alert(
        "PaddleJobNoLeader",
        f"sum by (namespace) ({metric.LEADER}) == 0",
        "2m",
        "critical",
        "No replica of the PaddleJob operator is the leader.",
        "Jobs are not reconciled. See the operator's log for why the lease paddlejob-operator cannot be acquired.",
    ),
    Alert(
        "PaddleJobOperatorBlind",
        f"{metric.INFORMER_FAILING} > 60",
        "",
        "critical",
        "The operator has not been able to list or watch {{ $labels.resource }} for a minute.",
        "Failures are not noticed. See the operator's log; compare its permissions with deploy/v1/operator.yaml.",
    ),
    Alert(
        "PaddleJobOperatorSlow",
        f"{quantile(0.99, metric.QUEUE_WAIT)} > 5",
        "10m",
        "warning",
        "Jobs wait more than five seconds to be reconciled.",
        "Compare the latency of the API server with the operator's use of CPU; raise its CPU limit if it has one.",
    ),
    Alert(
        "PaddleJobReconcileErrors",
        f"sum(increase({metric.RECONCILE_ERRORS}[10m])) > 5",
        "",
        "warning",
        "Reconciliations of jobs fail.",
        "They are retried. The operator's log names the jobs and the errors.",
    ),
    Alert(
        "PaddleJobApiErrors",
        f"{FAILED_REQUESTS} / {ALL_REQUESTS} > 0.1",
        "10m",
        "warning",
        "More than a tenth of the operator's requests to the API server fail.",
        "Codes 429 mean that the server is overloaded, 0 that it did not respond. Look at the API server first.",
    ),
    Alert(
        "PaddleJobApiSlow",
        f"{quantile(0.99, metric.API_LATENCY, selector=WRITES)} > 2.5",
        "10m",
        "warning",
        "Writes of the operator take the API server more than 2.5 seconds.",
        "Look at the API server, etcd and admission webhooks. Jobs start and restart more slowly meanwhile.",
    ),
    Alert(
        "PaddleJobEventsDropped",
        f"sum(increase({metric.EVENTS_DROPPED}[10m])) > 0",
        "",
        "info",
        "Events about jobs could not be written.",
        "The status of the jobs is right all the same. The operator's log says whether too many events were pending or "
        "the API server rejected them.",
    ),
    Alert(
        "PaddleJobUnreadable",
        f'{metric.JOBS}{{phase="Unreadable"}} > 0',
        "10m",
        "warning",
        "Some PaddleJobs cannot be read by the operator.",
        "An event on each says why; correct or delete the job.",
    ),
    Alert(
        "PaddleJobNotPickedUp",
        f'{metric.JOBS}{{phase="Unseen"}} > 0',
        "10m",
        "warning",
        "For ten minutes there has always been a PaddleJob without a status.",
        "Find the oldest with `kubectl get pdj -A`; the operator's log says why its status cannot be written.",
    ),
)
PER_JOB = (
    Alert(
        "PaddleJobLowGoodput",
        f"{metric.GOODPUT} < 0.5",
        "1h",
        "info",
        "{{ $labels.namespace }}/{{ $labels.job }} loses half of its time to restarts.",
        "See why its attempts end with `pdj why`, and write checkpoints more often.",
    ),
    Alert(
        "PaddleJobSilent",
        f"{metric.JOB_OUTPUT_AGE} > 1800",
        "",
        "info",
        "{{ $labels.namespace }}/{{ $labels.job }} has printed nothing for half an hour.",
        "It may hang. Set spec.stallSeconds to have a job restarted that does.",
    ),
)
ALERTS = (*OPERATOR, *PER_JOB)


def rules() -> dict[str, Any]:
    """The content of a rules file, which is also the spec of a PrometheusRule."""
    groups = {"paddlejob-operator": OPERATOR, "paddlejob-jobs": PER_JOB}
    return {"groups": [{"name": name, "rules": [one.rule for one in alerts]} for name, alerts in groups.items()]}


def prometheus_rule() -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "paddlejob", "labels": LABELS},
        "spec": rules(),
    }
