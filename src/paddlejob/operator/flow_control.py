"""API priority and fairness for the operator: its requests neither crowd out those of others nor are crowded out."""

from __future__ import annotations

from paddlejob.kube.resource import LEASES, Object

NAME = "paddlejob-operator"
API = "flowcontrol.apiserver.k8s.io/v1"
SHARES = 30
"""With the default levels about a tenth of the server: 65 of 600 requests at a time. The operator sends at most 40."""
PRECEDENCE = 850
"""Before `service-accounts` (9000), in which every other service account is."""
LEASE_PRECEDENCE = 190
"""Before the schema above: a leader must renew its lease while its own requests wait."""


def flow_control(account: str, namespace: str, labels: dict[str, str]) -> list[Object]:
    """A priority level of its own for the operator, and the level of all leader elections for its lease."""
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": account, "namespace": namespace}}
    everything = [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]},
    ]
    lease = [
        {
            "verbs": ["get", "create", "update"],
            "apiGroups": [LEASES.group],
            "resources": [LEASES.plural],
            "namespaces": [namespace],
        },
    ]
    return [
        {
            "apiVersion": API,
            "kind": "PriorityLevelConfiguration",
            "metadata": {"name": NAME, "labels": labels},
            "spec": {"type": "Limited", "limited": _limits()},
        },
        _schema(NAME, labels, NAME, PRECEDENCE, subject, everything),
        _schema(f"{NAME}-lease", labels, "leader-election", LEASE_PRECEDENCE, subject, lease),
    ]


def _limits() -> Object:
    queuing = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
    return {
        "nominalConcurrencyShares": SHARES,
        "lendablePercent": 50,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }


def _schema(
    name: str, labels: dict[str, str], level: str, precedence: int, subject: Object, rules: list[Object]
) -> Object:
    return {
        "apiVersion": API,
        "kind": "FlowSchema",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [subject], "resourceRules": rules}],
        },
    }
