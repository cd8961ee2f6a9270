"""The target that `pdj target` remembers, so that commands need no --cluster, --context and -n."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from paddlejob.errors import BadInput, NotPossible
from paddlejob.home import home_directory


@dataclass(frozen=True)
class Remembered:
    cluster: bool = False
    context: str = ""
    """Of the kubeconfig; empty: its current one."""
    namespace: str = ""

    def __str__(self) -> str:
        context = f"context {self.context}" if self.context else "the current kubeconfig context"
        where = f"cluster ({context})" if self.cluster else "this machine"
        return f"{where}, namespace {self.namespace}" if self.namespace else where

    @property
    def local_namespace(self) -> str:
        """The namespace of jobs on this machine that name none; empty: the default."""
        return "" if self.cluster else self.namespace


def config_directory() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or home_directory() / ".config", "paddlejob")


def target_file() -> Path:
    return config_directory() / "target.json"


def read_remembered() -> Remembered:
    path = target_file()
    try:
        return Remembered(**json.loads(path.read_text()))
    except FileNotFoundError:
        return Remembered()
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{path} cannot be read: {error}; choose the target anew with `pdj target`") from None


def remember(chosen: Remembered) -> None:
    path = target_file()
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(chosen)))
        part.replace(path)
    except OSError as error:
        raise NotPossible(f"{path} cannot be written: {error.strerror}") from None
