"""What the Job's environment and the command line ask for. All that is wrong is said at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlejob.launch.words import LaunchError, listed

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WAIT_SECONDS = 600
PORTS_TODAY = 4
"""Today's Paddle needs three ports from CONF_PADDLE_PORT on: server, trainer and gloo. The documents open four."""


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
    passed_on: tuple[str, ...]
    """Arguments for the trainer, as they were given."""

    @property
    def config(self) -> Path:
        return self.root / self.config_dir

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def meeting_port(self) -> int:
        """Where the pods of a group keep in touch: the first port behind those of the servers."""
        return self.port + max(self.ports + self.sparse_ports, PORTS_TODAY)

    def part(self, trainer: int) -> Path:
        return self.root / str(trainer) / "data"

    def logs(self, trainer: int) -> Path:
        return self.output / f"node_{trainer}"


def read_settings(environ: Mapping[str, str], arguments: Sequence[str]) -> Settings:
    faults: list[str] = []
    job, path, config_dir = (_text(environ, name, faults) for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR"))
    found = Settings(
        job=job,
        root=Path(path) / job,
        namespace=environ.get("JOB_NAMESPACE") or _own_namespace(),
        config_dir=config_dir,
        nic=environ.get("CONF_PADDLE_NIC") or "eth0",
        port=_number(environ, "CONF_PADDLE_PORT", 7164, 1, faults),
        ports=_number(environ, "CONF_PADDLE_PORTS_NUM", 2, 1, faults),
        sparse_ports=_number(environ, "CONF_PADDLE_PORTS_NUM_SPARSE", 2, 0, faults),
        trainers=_number(environ, "CONF_PADDLE_GRADIENT_NUM", _trainers_known(environ), 1, faults),
        threads=_number(environ, "TRAINER_COUNT", 1, 1, faults),
        wait_seconds=_number(environ, "JOB_WAIT_SECONDS", WAIT_SECONDS, 1, faults),
        passed_on=tuple(arguments),
    )
    if not faults and found.meeting_port > 65535:
        faults.append(f"CONF_PADDLE_PORT: is {found.port}, and the ports from there on pass 65535; use a lower one")
    if faults:
        raise LaunchError("; ".join(faults))
    return found


def refuse_missing_config(settings: Settings) -> None:
    """Say what is there where TRAIN_CONFIG_DIR is not, or where the whole volume is not."""
    if settings.config.is_dir():
        return
    if not settings.root.is_dir():
        raise LaunchError(
            f"{settings.root}: is not there; JOB_PATH should be where the shared volume is mounted, and "
            "JOB_NAME a directory on it with the data, made by the data job"
        )
    there = sorted(one.name for one in settings.root.iterdir() if one.is_dir())
    programs = [name for name in there if not name.isdigit() and name != "output"]
    raise LaunchError(
        f"TRAIN_CONFIG_DIR: is {settings.config_dir}, which is not in {settings.root}; there is {listed(programs)}"
    )


def _text(environ: Mapping[str, str], name: str, faults: list[str]) -> str:
    value = environ.get(name, "")
    if not value:
        faults.append(f"{name}: is not set; set it in the Job's env")
    return value


def _number(environ: Mapping[str, str], name: str, default: int, least: int, faults: list[str]) -> int:
    text = environ.get(name) or str(default)
    if text.isdecimal() and int(text) >= least:
        return int(text)
    faults.append(f"{name}: is {environ.get(name) or 'not set'}; set it to a whole number, {least} or more")
    return least


def _trainers_known(environ: Mapping[str, str]) -> int:
    """From the engine that hands the peers over, or from the operator of a PaddleJob; else 0."""
    peers = [peer for peer in environ.get("PADDLEJOB_PEERS", "").split(",") if peer]
    told = environ.get("PADDLE_TRAINERS_NUM", "")
    return len(peers) or (int(told) if told.isdecimal() else 0)


def _own_namespace() -> str:
    mounted = SERVICE_ACCOUNT / "namespace"
    return mounted.read_text().strip() if os.access(mounted, os.R_OK) else "default"
