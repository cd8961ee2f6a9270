"""The operator's log: one JSON object per line, or plain text."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import orjson

from paddlejob.engine.log_context import job_in_progress
from paddlejob.errors import BadInput


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_job(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


def _job(record: logging.LogRecord) -> dict[str, object]:
    """The job that the line is about: named by the caller, or the one that the current task works on."""
    if hasattr(record, "job"):
        return {"namespace": getattr(record, "namespace", ""), "job": record.job}
    current = job_in_progress()
    if current is None:
        return {}
    attempt = {} if current.attempt is None else {"attempt": current.attempt}
    return {"namespace": current.namespace, "job": current.name, **attempt}


def set_up_logs(style: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    match style:
        case "json":
            handler.setFormatter(JsonFormatter())
        case "text":
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        case _:
            raise BadInput(f"--log-format: {style} is not a format; use json or text")
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
