"""Jobs in the files of the embedded engine, without an engine."""

from __future__ import annotations

import time
from typing import Any

from paddlejob.api.types import Status
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, JobStore
from tests.support.builders import document


def stored(
    store: JobStore, name: str = "mnist", namespace: str = "default", status: Any = None, **spec: Any
) -> JobFolder:
    """A job that no engine runs."""
    made = document(name, **{"workers": 2, **spec})
    made["metadata"]["namespace"] = namespace
    folder, lock = store.begin(made, RunOptions(), time.time())
    folder.write_status(Status.model_validate({"phase": "Running", "attempt": 1, **(status or {})}))
    lock.release()
    return folder
