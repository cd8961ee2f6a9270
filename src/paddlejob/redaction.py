"""What is left out of a program's output before anything quotes it."""

from __future__ import annotations

import re

DUMP = re.compile(r"\benv(?:s|iron)?:? ?\(?\{.*")
CUT = re.compile(r"['\"]\}\)?\s*$")
"""The end of a dump whose beginning is not in the output: kubelets keep the last 2 KiB."""
VARIABLE = re.compile(r"['\"], '[A-Z_][A-Z0-9_]*': ['\"]")
REPLACEMENT = "env {...}"


def without_environment(text: str) -> str:
    """Paddle's launcher prints the whole environment when a program fails; secrets in it stay in the log."""
    first, newline, rest = text.partition("\n")
    if _is_end_of_dump(first):
        first = REPLACEMENT
    return DUMP.sub(REPLACEMENT, first + newline + rest)


def _is_end_of_dump(line: str) -> bool:
    """Whether the line is what is left of a dump: it closes a brace that it does not open, or lists variables."""
    if not CUT.search(line):
        return False
    lists_variables = VARIABLE.search(line) is not None and not line.startswith("{")
    return lists_variables or line.count("}") > line.count("{")
