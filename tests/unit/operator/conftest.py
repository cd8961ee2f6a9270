import logging
from collections.abc import Iterator

import pytest

from tests.support.serving import api, client, serve, server

__all__ = ["api", "client", "serve", "server"]


@pytest.fixture
def handlers_of_before() -> Iterator[None]:
    """The test sets up the log of an operator."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
