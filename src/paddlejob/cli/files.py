"""Reading the files that a user names on the command line, and writing those that a verb produces."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.errors import BadInput, NotPossible


def objects_in(name: str) -> list[dict[str, Any]]:
    """The Kubernetes objects in a file; `-` is standard input."""
    from paddlejob.api.documents import documents

    if name == "-":
        return documents(sys.stdin.read(), "standard input")
    path = Path(name)
    if not name or not path.exists():
        raise BadInput(f"{name}: no such file")
    if path.is_dir():
        raise BadInput(f"{name}: is a directory; name a file in it")
    try:
        return documents(path.read_text(encoding="utf-8"), name)
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: is not a text file: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}") from None


def jobs_in(name: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The PaddleJobs among the objects of a file; raises BadInput if there are none."""
    jobs = [document for document in objects if is_paddle_job(document)]
    if not jobs:
        raise no_job_in(name, objects)
    return jobs


def no_job_in(name: str, objects: list[dict[str, Any]]) -> BadInput:
    """The error for a file without a PaddleJob."""
    kinds = [str(document.get("kind") or "an object without kind") for document in objects]
    if "Job" in kinds:
        remedy = "run it with `pdj run` or kubectl, or turn it into a PaddleJob with `pdj convert`"
    elif difflib.get_close_matches(contract.KIND, kinds, 1):
        remedy = f"did you mean kind: {contract.KIND}?"
    else:
        remedy = "check kind and apiVersion, or create a job file with `pdj init`"
    return BadInput(f"{name}: contains no PaddleJob, only {', '.join(dict.fromkeys(kinds))}; {remedy}")


def is_paddle_job(document: dict[str, Any]) -> bool:
    return document.get("kind") == contract.KIND


def check_new_file(name: str, force: bool) -> Path:
    """The path of a file to write; raises BadInput if it exists, unless it may be overwritten."""
    path = Path(name)
    if path.exists() and not force:
        raise BadInput(f"{name}: already exists; choose another name or overwrite it with --force")
    return path


def write_file(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotPossible(f"{path}: cannot be written: {error.strerror}") from None
