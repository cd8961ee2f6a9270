"""Reading what a user names on the command line."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.errors import BadInput


def objects_in(name: str) -> list[dict[str, Any]]:
    """The Kubernetes objects of a file; `-` is standard input."""
    from paddlejob.api.documents import documents

    if name == "-":
        return documents(sys.stdin.read(), "standard input")
    path = Path(name)
    if not name or not path.exists():
        raise BadInput(f"{name}: there is no such file")
    if path.is_dir():
        raise BadInput(f"{name}: is a directory; name a file in it")
    try:
        return documents(path.read_text(encoding="utf-8"), name)
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: is not text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}") from None


def no_job_in(name: str, objects: list[dict[str, Any]]) -> BadInput:
    """What to say of a file without a PaddleJob."""
    kinds = [str(one.get("kind") or "an object without kind") for one in objects]
    if "Job" in kinds:
        words = "`pdj run` trains it here as it is, kubectl on a cluster, and `pdj convert` makes a PaddleJob of it"
    else:
        close = difflib.get_close_matches(contract.KIND, kinds, 1)
        words = f"did you mean kind: {contract.KIND}?" if close else "check kind and apiVersion (`pdj init` writes one)"
    return BadInput(f"{name}: holds no PaddleJob, but {', '.join(dict.fromkeys(kinds))}; {words}")


def is_paddle_job(document: dict[str, Any]) -> bool:
    return document.get("kind") == contract.KIND
