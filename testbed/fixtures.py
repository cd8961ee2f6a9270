"""pytest fixtures. The conftest.py of a tier imports those it needs, and `pytest_runtest_makereport`.

A tier that this machine cannot run is skipped with a single line saying why; TESTBED_REQUIRED=1 makes that an error.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

import pytest

from paddlejob.errors import NotPossible
from testbed.access import Access
from testbed.addons.kueue import Kueue
from testbed.addons.volcano import Volcano
from testbed.cluster import Cluster
from testbed.controlplane import ControlPlane
from testbed.existing import Existing

FAKE_NODES = 20
Made = TypeVar("Made")
_NOT_HERE = "no test cluster here"
_numbers = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report all tests skipped for lack of a cluster at the same location, so that pytest prints one line for them."""
    report = yield
    if report.skipped and call.excinfo and str(call.excinfo.value).startswith(_NOT_HERE):
        tier = item.config.rootpath.joinpath(*item.nodeid.split("/")[:2])
        report.longrepr = (str(tier), None, str(call.excinfo.value))  # type: ignore[assignment]
    return report


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """etcd, the API server and the controller manager, without nodes: pods stay Pending."""
    plane = _made(request, ControlPlane)
    with plane, _keeping_logs(request, plane):
        yield plane


@pytest.fixture(scope="module")
def own_control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A separate control plane that the tests of one module may break."""
    plane = _made(request, ControlPlane)
    with plane, _keeping_logs(request, plane):
        yield plane


@pytest.fixture(scope="session")
def kwok_cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A separate control plane with scheduler and fake nodes: every pod runs until a test deletes it."""
    plane = _made(request, lambda: ControlPlane(scheduler=True, fake_nodes=FAKE_NODES))
    with plane, _keeping_logs(request, plane):
        yield plane


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three real nodes, which a test may kill, disconnect and restart."""
    if os.environ.get("TESTBED_KUBECONFIG"):
        pytest.skip(f"{_NOT_HERE}: this test kills nodes and must not do that to yours; unset TESTBED_KUBECONFIG")
    made = _made(request, Cluster)
    with made, _keeping_logs(request, made.plane):
        yield made


@pytest.fixture(scope="session")
def any_cluster(request: pytest.FixtureRequest) -> Iterator[Access]:
    """The user's cluster if TESTBED_KUBECONFIG is set, otherwise `cluster`."""
    if own := os.environ.get("TESTBED_KUBECONFIG"):
        with Existing(Path(own)) as existing:
            yield existing
    else:
        yield request.getfixturevalue("cluster")


@pytest.fixture(scope="module")
def volcano(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Volcano]:
    """Volcano in `cluster`, for the tests of one module."""
    made = _made(request, lambda: Volcano(cluster.plane))
    with made:
        yield made


@pytest.fixture(scope="module")
def kueue(request: pytest.FixtureRequest, own_control_plane: ControlPlane) -> Iterator[Kueue]:
    """Kueue in `own_control_plane`, for the tests of one module."""
    made = _made(request, lambda: Kueue(own_control_plane))
    with made:
        yield made


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace in `control_plane`."""
    yield from _namespace(control_plane)


@pytest.fixture
def kwok_namespace(kwok_cluster: ControlPlane) -> Iterator[str]:
    """A new namespace in `kwok_cluster`."""
    yield from _namespace(kwok_cluster)


@pytest.fixture
def cluster_namespace(any_cluster: Access) -> Iterator[str]:
    """A new namespace in `any_cluster`."""
    yield from _namespace(any_cluster)


def _namespace(access: Access) -> Iterator[str]:
    name = f"test-{os.getpid()}-{next(_numbers)}"
    access.create_namespace(name)
    yield name
    access.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found", check=False)


def _made(request: pytest.FixtureRequest, make: Callable[[], Made]) -> Made:
    """Call `make` with its output on the terminal, because a first build takes minutes."""
    try:
        with _uncaptured(request):
            return make()
    except NotPossible as error:
        if os.environ.get("TESTBED_REQUIRED") == "1":
            raise
        pytest.skip(f"{_NOT_HERE}: {error}")


@contextmanager
def _keeping_logs(request: pytest.FixtureRequest, plane: ControlPlane) -> Iterator[None]:
    """Keep the logs and print their directory if a test fails."""
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before:
        plane.keep_logs = True
        with _uncaptured(request):
            print(f"\nLogs of the test cluster: {plane.directory}")


def _uncaptured(request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()
