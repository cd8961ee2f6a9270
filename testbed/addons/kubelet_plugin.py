"""Plugins of a kubelet: gRPC servers that it calls through sockets in its directory.

Their messages hold little more than strings, so they are written here as protobuf writes them, without generated code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from testbed.nodes.node import Node

INSIDE = Path("/var/lib/kubelet")
REGISTRATION = "pluginregistration.Registration"
NUMBER = 0
"""The kind of a field that holds a number."""
Method = Callable[[bytes], bytes]


@contextmanager
def registered(
    node: Node, kind: str, driver: str, version: str, services: dict[str, dict[str, Method]]
) -> Iterator[None]:
    """Serve a driver, which the kubelet of a node finds by a socket beside it."""
    folder, socket = node.kubelet_directory, f"{driver}.sock"
    about = field(1, kind) + field(2, driver) + field(3, str(INSIDE / "plugins" / socket)) + field(4, version)
    registration: dict[str, Method] = {"GetInfo": lambda _: about, "NotifyRegistrationStatus": lambda _: b""}
    with (
        served(folder / "plugins" / socket, services),
        served(folder / "plugins_registry" / socket, {REGISTRATION: registration}),
    ):
        yield


@contextmanager
def served(
    socket: Path,
    services: dict[str, dict[str, Method]],
    list_and_watch: Callable[[bytes, Any], Iterator[bytes]] | None = None,
) -> Iterator[None]:
    server = grpc.server(ThreadPoolExecutor(4))
    for service, methods in services.items():
        handlers = {name: grpc.unary_unary_rpc_method_handler(_answering(method)) for name, method in methods.items()}
        if list_and_watch:
            handlers["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(list_and_watch)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(1).wait()
        socket.unlink(missing_ok=True)


def _answering(method: Method) -> Callable[[bytes, Any], bytes]:
    return lambda request, _: method(request)


def field(number: int, value: str | bytes) -> bytes:
    """A string or message in protobuf's format: key, length, content."""
    content = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


def fields(message: bytes, wanted: int) -> list[bytes]:
    """The contents of the fields with this number; numbers, which are not strings or messages, are left out."""
    found, position = [], 0
    while position < len(message):
        number, kind = message[position] >> 3, message[position] & 7
        length, position = _read_varint(message, position + 1)
        if kind == NUMBER:
            continue
        found += [message[position : position + length]] if number == wanted else []
        position += length
    return found


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """A number, and the position behind it."""
    number = shift = 0
    while True:
        byte = message[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position
