from collections.abc import Iterator
from uuid import uuid4

import fsspec
import pytest


@pytest.fixture
def memory() -> Iterator[str]:
    """A directory in memory, as a URL."""
    url = f"memory://{uuid4().hex}"
    yield url
    fs = fsspec.filesystem("memory")
    if fs.exists(url):
        fs.rm(url, recursive=True)
