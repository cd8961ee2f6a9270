"""The settings from the Job's environment and the command line; all errors are reported at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlejob.launch.output import LaunchError, comma_separated

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WAIT_SECONDS = 600
FLEET_PORTS = 4
"""Current Paddle needs three ports starting at CONF_PADDLE_PORT: server, trainer and gloo. The documents open four."""


@dataclass(frozen=True)
class Settings:
    job: str
    root: Path
    """JOB_PATH/JOB_NAME on the shared volume."""
    namespace: str
    config_dir: str
    nic: str
    port: int
    ports: int
    sparse_ports: int
    trainers: int
    threads: int
    wait_seconds: int
    trainer_args: tuple[str, ...]
    """Arguments for the trainer, unchanged."""

    @property
    def config(self) -> Path:
        return self.root / self.config_dir

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def rendezvous_port(self) -> int:
        """The first port after those of the servers; the launchers of a group connect to each other on it."""
        return self.port + max(self.ports + self.sparse_ports, FLEET_PORTS)

    def data_dir(self, trainer: int) -> Path:
        return self.root / str(trainer) / "data"

    def log_dir(self, trainer: int) -> Path:
        return self.output / f"node_{trainer}"


def read_settings(environ: Mapping[str, str], arguments: Sequence[str]) -> Settings:
    errors: list[str] = []
    job, path, config_dir = (_text(environ, name, errors) for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR"))
    found = Settings(
        job=job,
        root=Path(path) / job,
        namespace=environ.get("JOB_NAMESPACE") or _own_namespace(),
        config_dir=config_dir,
        nic=environ.get("CONF_PADDLE_NIC") or "eth0",
        port=_number(environ, "CONF_PADDLE_PORT", 7164, 1, errors),
        ports=_number(environ, "CONF_PADDLE_PORTS_NUM", 2, 1, errors),
        sparse_ports=_number(environ, "CONF_PADDLE_PORTS_NUM_SPARSE", 2, 0, errors),
        trainers=_number(environ, "CONF_PADDLE_GRADIENT_NUM", _known_trainers(environ), 1, errors),
        threads=_number(environ, "TRAINER_COUNT", 1, 1, errors),
        wait_seconds=_number(environ, "JOB_WAIT_SECONDS", WAIT_SECONDS, 1, errors),
        trainer_args=tuple(arguments),
    )
    if not errors and found.rendezvous_port > 65535:
        errors.append(f"CONF_PADDLE_PORT: {found.port} is too high; the ports after it exceed 65535; use a lower port")
    if errors:
        raise LaunchError("; ".join(errors))
    return found


def require_config(settings: Settings) -> None:
    """Raise if TRAIN_CONFIG_DIR or the whole volume is missing, and list what exists instead."""
    if settings.config.is_dir():
        return
    if not settings.root.is_dir():
        raise LaunchError(
            f"{settings.root}: no such directory; set JOB_PATH to the mount path of the shared volume and JOB_NAME to "
            "the directory on it that the data job created"
        )
    directories = sorted(path.name for path in settings.root.iterdir() if path.is_dir())
    programs = [name for name in directories if not name.isdigit() and name != "output"]
    raise LaunchError(
        f"TRAIN_CONFIG_DIR: no directory {settings.config_dir} in {settings.root}; found {comma_separated(programs)}"
    )


def _text(environ: Mapping[str, str], name: str, errors: list[str]) -> str:
    value = environ.get(name, "")
    if not value:
        errors.append(f"{name}: not set; set it in the Job's env")
    return value


def _number(environ: Mapping[str, str], name: str, default: int, minimum: int, errors: list[str]) -> int:
    text = environ.get(name) or str(default)
    if text.isdecimal() and int(text) >= minimum:
        return int(text)
    problem = f"{environ[name]} is not valid" if environ.get(name) else "not set"
    errors.append(f"{name}: {problem}; set it to a whole number, {minimum} or more")
    return minimum


def _known_trainers(environ: Mapping[str, str]) -> int:
    """The number of trainers from the embedded engine or the operator of a PaddleJob; otherwise 0."""
    peers = [peer for peer in environ.get("PADDLEJOB_PEERS", "").split(",") if peer]
    count = environ.get("PADDLE_TRAINERS_NUM", "")
    return len(peers) or (int(count) if count.isdecimal() else 0)


def _own_namespace() -> str:
    mounted = SERVICE_ACCOUNT / "namespace"
    return mounted.read_text().strip() if os.access(mounted, os.R_OK) else "default"
