"""Rules between fields, each written twice: in CEL for the API server, in Python for `pdj validate` and `pdj run`.

`tests/apiserver` applies both to the same invalid jobs and compares the results. A check gets an object of the job
file that matches the schema, with defaults, and returns the fault or None.
"""

from __future__ import annotations

from paddlejob.api.rules import failures, life, names, roles, scheduling
from paddlejob.api.rules.changes import CHANGE_RULES
from paddlejob.api.rules.names import NOT_A_LABEL
from paddlejob.api.rules.rule import NAME_LIMIT, ROLES, ChangeRule, Obj, Rule

RULES = (*names.RULES, *roles.RULES, *life.RULES, *scheduling.RULES, *failures.RULES)
"""Messages are constants: an expression with string(number) exceeds the API server's cost limit."""

__all__ = ["CHANGE_RULES", "NAME_LIMIT", "NOT_A_LABEL", "ROLES", "RULES", "ChangeRule", "Obj", "Rule"]
