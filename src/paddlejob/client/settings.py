"""Defaults that a user keeps in a file: $XDG_CONFIG_HOME/paddlejob/config.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from paddlejob.errors import BadInput

KNOWN = ("image", "gpu_image")


@dataclass(frozen=True)
class Settings:
    image: str = ""
    """The image of programs that are submitted without --image."""
    gpu_image: str = ""
    """The same for programs with --gpus."""


def settings_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base, "paddlejob", "config.toml")


def read_settings() -> Settings:
    path = settings_file()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    for name, value in found.items():
        if name not in KNOWN:
            raise BadInput(f"{path}: {name}: is not a setting; known are {', '.join(KNOWN)}")
        if not isinstance(value, str):
            raise BadInput(f"{path}: {name}: must be text in quotes")
    return Settings(**found)


def default_image(gpus: int) -> str:
    """The image for a program on a cluster; raises BadInput if none is known."""
    settings = read_settings()
    chosen = settings.gpu_image if gpus else settings.image
    if chosen:
        return chosen
    version = paddle_version()
    if gpus or not version:
        key = "gpu_image" if gpus else "image"
        raise BadInput(f"--image: is missing; name an image with PaddlePaddle, or set `{key}` in {settings_file()}")
    return f"paddlepaddle/paddle:{version}"


def paddle_version() -> str:
    """The version of PaddlePaddle that is installed here; empty if none is."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("paddlepaddle")
    except PackageNotFoundError:
        return ""
