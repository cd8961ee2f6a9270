"""Speedups: objects that moto, botocore and typer create for every call are created once.

Measured with cProfile: 1300 machine images for each new EC2 backend of moto were a third of all time; sessions and
clients of botocore, the template read by a slow parser, keys and tables of moto and typer's commands another third.
"""

from __future__ import annotations

import copy
import functools
import os
from typing import Any

import botocore.client
import botocore.loaders
import botocore.session
import pytest
import typer.testing
from cryptography.hazmat.primitives.asymmetric import rsa
from moto.cloudformation.models import Stack
from moto.ec2.models import instance_types

from paddlejob.cloud.aws.session import Aws

os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

_parse_template = Stack.parse_template
_make_class = botocore.client.ClientCreator._create_client_class
_make_command = typer.testing._get_command
_make_session, _make_client = Aws.session, Aws.client
_classes: dict[str, Any] = {}
_sessions: dict[tuple[object, ...], Any] = {}
_clients: dict[tuple[object, ...], Any] = {}


def reuse_expensive_objects(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(botocore.session, "create_loader", _loader)
    patch.setattr(botocore.client.ClientCreator, "_create_client_class", _client_class)
    patch.setattr(Stack, "parse_template", staticmethod(lambda text: copy.deepcopy(_parsed(text))))
    patch.setattr(typer.testing, "_get_command", _command)


def share_clients(patch: pytest.MonkeyPatch) -> None:
    """For tests with moto, which answers any client. Those with a Stubber have clients of their own."""
    patch.setattr(Aws, "session", _session)
    patch.setattr(Aws, "client", _client)
    patch.setattr(rsa, "generate_private_key", _private_key)
    patch.setattr(instance_types, "load_resource", _resource)


def _session(self: Aws) -> Any:
    key = (self.region, self.profile)
    if key not in _sessions:
        _sessions[key] = _make_session(self)
    return _sessions[key]


def _client(self: Aws, service: str) -> Any:
    key = (self.region, self.profile, service)
    if key not in _clients:
        _clients[key] = _make_client(self, service)
    return _clients[key]


_private_key = functools.cache(rsa.generate_private_key)
_resource = functools.cache(instance_types.load_resource)


@functools.cache
def _loader(search_path_string: str | None = None) -> botocore.loaders.Loader:
    return botocore.loaders.Loader()


def _client_class(self: botocore.client.ClientCreator, service_name: str, service_model: Any) -> Any:
    if service_name not in _classes:
        _classes[service_name] = _make_class(self, service_name, service_model)
    return _classes[service_name]


@functools.cache
def _parsed(template: str) -> Any:
    return _parse_template(template)


@functools.cache
def _command(app: typer.Typer) -> Any:
    return _make_command(app)
