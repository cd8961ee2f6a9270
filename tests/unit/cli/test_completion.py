"""Completion in the shell, as bash asks for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobStore
from tests.support.builders import document
from tests.support.called_pdj import pdj


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    store = JobStore(tmp_path / "state")
    for name, namespace in (("mnist", "default"), ("model", "default"), ("other", "team")):
        job = document(name)
        job["metadata"] = {"name": name, "namespace": namespace}
        store.begin(job, RunOptions(), time.time())[1].release()
    return store


def complete(store: JobStore, *typed: str) -> list[str]:
    asked = {
        "_PDJ_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("pdj", *typed)),
        "COMP_CWORD": str(len(typed)),
        "PADDLEJOB_STATE": str(store.root),
        "KUBECONFIG": str(store.root / "none"),
    }
    done = pdj(**asked)
    assert done.stderr == ""
    return done.stdout.split()


def test_names_of_jobs_are_completed(store: JobStore):
    assert complete(store, "get", "m") == ["mnist", "model"]
    assert complete(store, "logs", "mn") == ["mnist"]
    assert complete(store, "why", "-n", "team", "") == ["other"]


def test_a_cluster_that_cannot_be_reached_completes_nothing_and_says_nothing(store: JobStore):
    assert complete(store, "get", "--cluster", "m") == []


def test_verbs_are_completed_too(store: JobStore):
    assert complete(store, "unin") == ["uninstall"]
