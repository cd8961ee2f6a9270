"""pytest fixtures. A tier's conftest.py imports those it needs, and `pytest_runtest_makereport`.

A tier that this machine cannot run is skipped with one line that says why; TESTBED_REQUIRED=1 makes that an error.
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
    """Give all tests of a tier that lack the cluster the same place, so that pytest prints one line for them."""
    report = yield
    if report.skipped and call.excinfo and str(call.excinfo.value).startswith(_NOT_HERE):
        tier = item.config.rootpath.joinpath(*item.nodeid.split("/")[:2])
        report.longrepr = (str(tier), None, str(call.excinfo.value))  # type: ignore[assignment]
    return report


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """etcd, the API server and the controller manager; no node, so pods stay Pending."""
    plane = _made(request, ControlPlane)
    with plane, _keeping_logs(request, plane):
        yield plane


@pytest.fixture(scope="module")
def own_control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane that the tests of one module may break without disturbing others."""
    plane = _made(request, ControlPlane)
    with plane, _keeping_logs(request, plane):
        yield plane


@pytest.fixture(scope="session")
def kwok_cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of its own with the scheduler and fake nodes: every pod runs, until a test ends it."""
    plane = _made(request, lambda: ControlPlane(scheduler=True, fake_nodes=FAKE_NODES))
    with plane, _keeping_logs(request, plane):
        yield plane


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three real nodes, which a test may kill, cut off and bring back."""
    if os.environ.get("TESTBED_KUBECONFIG"):
        pytest.skip(f"{_NOT_HERE}: this kills nodes, and those of TESTBED_KUBECONFIG are not ours; unset it")
    made = _made(request, Cluster)
    with made, _keeping_logs(request, made.plane):
        yield made


@pytest.fixture(scope="session")
def any_cluster(request: pytest.FixtureRequest) -> Iterator[Access]:
    """The user's own cluster where TESTBED_KUBECONFIG names one, else ours."""
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


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace of `control_plane`, in which pods may be created."""
    yield from _namespace(control_plane)


@pytest.fixture
def kwok_namespace(kwok_cluster: ControlPlane) -> Iterator[str]:
    """A fresh namespace of `kwok_cluster`."""
    yield from _namespace(kwok_cluster)


@pytest.fixture
def cluster_namespace(any_cluster: Access) -> Iterator[str]:
    """A fresh namespace of `any_cluster`."""
    yield from _namespace(any_cluster)


def _namespace(access: Access) -> Iterator[str]:
    name = f"test-{os.getpid()}-{next(_numbers)}"
    access.create_namespace(name)
    yield name
    access.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found", check=False)


def _made(request: pytest.FixtureRequest, make: Callable[[], Made]) -> Made:
    """What `make` makes, with the progress of a build that takes minutes shown on the terminal."""
    try:
        with _uncaptured(request):
            return make()
    except NotPossible as error:
        if os.environ.get("TESTBED_REQUIRED") == "1":
            raise
        pytest.skip(f"{_NOT_HERE}: {error}")


@contextmanager
def _keeping_logs(request: pytest.FixtureRequest, plane: ControlPlane) -> Iterator[None]:
    """Keep the logs, and say where they are, if a test fails meanwhile."""
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before:
        plane.keep_logs = True
        with _uncaptured(request):
            print(f"\nlogs of the test cluster: {plane.directory}")


def _uncaptured(request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()
