"""What engines that were killed left on the disk: the directories of their pods, with emptyDir volumes in them."""

from __future__ import annotations

import shutil

from paddlejob.local.state.store import JobFolder, Store


def remove_leftovers(store: Store) -> None:
    """Of all jobs that no engine runs. The lock keeps another engine from starting the job meanwhile."""
    for folder in store.folders():
        if not (folder.path / "pods").is_dir() or folder.has_runner:
            continue
        lock = folder.runner_lock()
        try:
            if lock.acquire():
                remove_pods(folder)
                lock.release()
        except OSError:
            # Another user's, or removed meanwhile.
            continue


def remove_pods(folder: JobFolder) -> None:
    """Of a job whose lock this process holds, before its first pod."""
    shutil.rmtree(folder.path / "pods", ignore_errors=True)
