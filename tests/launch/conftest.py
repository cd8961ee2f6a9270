"""A real API server for the tests that list pods."""

from testbed.fixtures import control_plane, namespace, pytest_runtest_makereport

__all__ = ["control_plane", "namespace", "pytest_runtest_makereport"]
