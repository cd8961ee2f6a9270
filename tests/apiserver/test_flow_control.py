"""The operator's requests have a priority level of their own at the API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.controlplane import ControlPlane

HEADER = "x-kubernetes-pf-flowschema-uid: "


@pytest.mark.parametrize(
    ("request_", "schema"),
    [
        (("get", "pods", "-A"), "paddlejob-operator"),
        (("get", "lease", "paddlejob-operator", "-n", "paddle-system"), "paddlejob-operator-lease"),
    ],
)
def test_requests_of_the_operator_are_classified(
    installed: ControlPlane, operator_kubeconfig: Path, request_: tuple[str, ...], schema: str
):
    def classified(*more: str) -> str:
        return installed.kubectl(*request_, "-v=8", *more, check=False).stderr.lower()

    uid = installed.kubectl("get", "flowschema", schema, "-o", "jsonpath={.metadata.uid}").stdout
    assert HEADER + uid in classified(f"--kubeconfig={operator_kubeconfig}")
    assert HEADER + uid not in classified(), "those of an administrator are not"


def test_the_level_holds_as_many_requests_as_the_operator_sends(installed: ControlPlane):
    """Of the 600 that an API server handles at once by default, a level gets its share of all shares."""
    paths = "{range .items[*]}{.metadata.name}={.spec.limited.nominalConcurrencyShares}{'\\n'}{end}"
    listed = installed.kubectl("get", "prioritylevelconfigurations", "-o", f"jsonpath={paths}").stdout
    shares = {name: int(count) for name, _, count in (line.partition("=") for line in listed.split()) if count}
    assert 600 * shares["paddlejob-operator"] / sum(shares.values()) >= 40
