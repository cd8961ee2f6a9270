"""cfn-lint with its rules loaded once: loading them takes as long as linting a template."""

from __future__ import annotations

import functools

from cfnlint.config import ConfigMixIn, ManualArgs
from cfnlint.decode.decode import decode_str
from cfnlint.runner import Runner


def findings(template: str, region: str = "us-west-2") -> list[str]:
    parsed, errors = decode_str(template)
    found = errors or _runner(region).validate_template(parsed)
    return [f"{match.rule.id} {match.message}" for match in found]


@functools.cache
def _runner(region: str) -> Runner:
    return Runner(ConfigMixIn(**ManualArgs(regions=[region])))
