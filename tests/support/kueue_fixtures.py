"""Fixtures for tests with a real Kueue in a control plane of their own."""

from __future__ import annotations

import pytest

from testbed.addons.kueue import Kueue
from testbed.controlplane import ControlPlane
from tests.support.kueue_team import Team
from tests.support.operator_fixtures import install
from tests.support.operator_stage import OperatorStage


@pytest.fixture(scope="module")
def own_plane(own_control_plane: ControlPlane, kueue: Kueue) -> ControlPlane:
    install(own_control_plane)
    return own_control_plane


@pytest.fixture
def team(own_stage: OperatorStage) -> Team:
    return Team(own_stage.client, own_stage.kubelet, own_stage.namespace)
