"""What all parts of a PaddleJob have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)
