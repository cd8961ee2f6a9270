"""Which failures restart a job, fail it, or do not count."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, WithJsonSchema

from paddlejob.api.reasons import ENDS_AN_ATTEMPT, Reason
from paddlejob.api.types.enums import Role
from paddlejob.api.types.model import Model


class FailureAction(StrEnum):
    RESTART = "Restart"
    FAIL = "Fail"
    IGNORE = "Ignore"


FailureReason = Annotated[
    Reason,
    WithJsonSchema(
        {
            "type": "string",
            "enum": [reason.value for reason in ENDS_AN_ATTEMPT],
            "description": "What ends an attempt, as status.reason shows it: failures of the program first, then "
            "disruptions.",
        }
    ),
]


class ExitCodeOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"


class ExitCodes(Model):
    role: Role | None = Field(None, description="Only pods of this role are looked at. By default all are.")
    operator: ExitCodeOperator = Field(
        description="In: a program that failed exited with one of the values. NotIn: none that failed did."
    )
    values: tuple[Annotated[int, Field(ge=1, le=255)], ...] = Field(
        min_length=1, max_length=255, description="Exit statuses."
    )


class FailureRule(Model):
    action: FailureAction = Field(
        description="Restart: the job restarts, counted against backoffLimit. Fail: the job fails at once. Ignore: the "
        "job restarts, not counted."
    )
    onExitCodes: ExitCodes | None = Field(None, description="The rule applies to these exit statuses of programs.")
    onReasons: tuple[FailureReason, ...] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="The rule applies if the reason why the attempt ended is one of these.",
    )


class FailurePolicy(Model):
    rules: tuple[FailureRule, ...] = Field(
        min_length=1,
        max_length=20,
        description="The first rule that applies decides. Without one, failures are counted and disruptions are not.",
    )
