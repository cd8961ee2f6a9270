"""Test-only: answers to operations that moto does not know. The request goes through botocore, and can be recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.validate import ParamValidator


def answer(patch: pytest.MonkeyPatch, operation: str, reply: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer one operation, of which botocore's model has to know the parameters; all others stay as they are."""
    plainly = BaseClient._make_api_call

    def answering(self: Any, name: str, params: dict[str, Any]) -> Any:
        if name != operation:
            return plainly(self, name, params)
        report = ParamValidator().validate(params, self.meta.service_model.operation_model(name).input_shape)
        assert not report.has_errors(), report.generate_report()
        return reply(params)

    patch.setattr(BaseClient, "_make_api_call", answering)
