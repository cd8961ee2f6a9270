"""Process 1 of a node: sets up its mounts, runs its services, and reaps orphans.

Runs as a script with the standard library only. Its one argument is a JSON file:
    hostname    the node's name
    tmpfs       directories that are empty at every start, as after a reboot
    binds       directories of the node, by mount point
    files       files of the node, by mount point
    services    command lines by name
    environment variables of the services, beside those of this process
    socket      the socket of the first service, which the others wait for
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main(file: str) -> None:
    node: dict[str, Any] = json.loads(Path(file).read_text())
    logs = Path(file).parent
    socket.sethostname(node["hostname"])
    mount(node)
    os.environ.update(node["environment"])
    running: dict[int, str] = {}
    for name, command in node["services"].items():
        running[start(command, logs / f"{name}.log")] = name
        wait_for(Path(node["socket"]))
    while True:
        ended, _ = os.wait()
        if name := running.pop(ended, ""):
            # Restart it, as an init system would.
            time.sleep(1)
            running[start(node["services"][name], logs / f"{name}.log")] = name


def mount(node: dict[str, Any]) -> None:
    call("mount", "-t", "proc", "proc", "/proc")
    for target in node["tmpfs"]:
        Path(target).mkdir(parents=True, exist_ok=True)
        call("mount", "-t", "tmpfs", "tmpfs", target)
    for target, source in node["binds"].items():
        Path(target).mkdir(parents=True, exist_ok=True)
        Path(source).mkdir(parents=True, exist_ok=True)
        call("mount", "--bind", source, target)
    for target, source in node["files"].items():
        call("mount", "--bind", source, target)


def start(command: list[str], log: Path) -> int:
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ).pid


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def call(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main(sys.argv[1])
