"""What engines that were killed left on the disk: the directories of their pods, with emptyDir volumes in them."""

from __future__ import annotations

import shutil

from paddlejob.local.state.store import JobFolder, JobStore


def remove_leftovers(store: JobStore) -> None:
    """Of all jobs that no engine runs. An engine that starts the job meanwhile waits for the lock, as it is shared."""
    for folder in store.folders():
        if not (folder.path / "pods").is_dir() or folder.has_runner:
            continue
        lock = folder.runner_lock()
        try:
            if lock.acquire(shared=True):
                remove_pods(folder)
                lock.release()
        except OSError:
            # Another user's, or removed meanwhile.
            continue


def remove_pods(folder: JobFolder) -> None:
    """Of a job whose lock this process holds, before its first pod."""
    shutil.rmtree(folder.path / "pods", ignore_errors=True)
