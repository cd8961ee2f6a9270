"""Defaults that a user keeps in a file: $XDG_CONFIG_HOME/paddlejob/config.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from paddlejob.api.devices import BY_KIND, DeviceRequest
from paddlejob.api.types import DeviceKind
from paddlejob.errors import BadArgument, BadInput
from paddlejob.targets.remembered import config_directory

SIZES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True)
class Settings:
    image: str = ""
    """The image of programs that are submitted without --image."""
    gpu_image: str = ""
    """The same for programs with --gpus."""
    keep_runs: int = 10
    """Previous runs of a job on this machine whose logs are kept."""
    keep_runs_size: str = "2Gi"
    """The most that these take, for each job."""

    @property
    def most_bytes(self) -> float:
        return float(self.keep_runs_size[:-2]) * SIZES[self.keep_runs_size[-2:]]


def settings_file() -> Path:
    return config_directory() / "config.toml"


def read_settings() -> Settings:
    path = settings_file()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from None
    for name, value in found.items():
        if problem := _problem(name, value):
            raise BadInput(f"{path}: {name} {problem}")
    return Settings(**found)


def _problem(name: str, value: Any) -> str:
    """What is wrong with a setting, and how to write it."""
    known = {one.name: one.default for one in fields(Settings)}
    if name not in known:
        return f"is not a setting; known are {', '.join(known)}"
    if isinstance(known[name], str) and not isinstance(value, str):
        return "must be text in quotes"
    if isinstance(known[name], int) and (type(value) is not int or value < 0):
        return "must be a number, 0 or more"
    if name == "keep_runs_size" and not re.fullmatch(rf"\d+({'|'.join(SIZES)})", value):
        return f"must be a size, such as {known[name]!r} or '500Mi'"
    return ""


def default_image(devices: DeviceRequest | None) -> str:
    """The image for a program on a cluster; raises BadInput if none is known."""
    settings = read_settings()
    if devices and devices.count and devices.device is not BY_KIND[DeviceKind.GPU]:
        raise BadArgument("image", f"is missing; name an image with PaddlePaddle for {devices.resource}")
    key = "gpu_image" if devices and devices.count else "image"
    if chosen := getattr(settings, key):
        return str(chosen)
    version = paddle_version()
    if key == "gpu_image" or not version:
        raise BadArgument("image", f"is missing; name an image with PaddlePaddle, or set `{key}` in {settings_file()}")
    return f"paddlepaddle/paddle:{version}"


def paddle_version() -> str:
    """The version of PaddlePaddle that is installed here; empty if none is."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("paddlepaddle")
    except PackageNotFoundError:
        return ""
