"""What every table of the configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Knows its keys and no others; cannot be changed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
