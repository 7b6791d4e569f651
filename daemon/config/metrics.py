"""The configuration's table `[metrics]`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from .section import Section


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where the metrics go, and how often they are made anew."""

    address: str
    port: int | None
    textfile: Path | None
    interval_s: int


def _address(text: str) -> str:
    ipaddress.ip_address(text)
    return text


def _textfile(path: str) -> str:
    if not path.startswith("/") or not path.endswith(".prom") or "\0" in path:
        raise ValueError(
            f"{path!r} is not an absolute path that ends in .prom, which node_exporter looks for"
        )
    return path


class MetricsSection(Section):
    """Where Prometheus finds the metrics (docs/metrics.md); off unless it has a port or a textfile."""

    address: Annotated[str, AfterValidator(_address)] = Field(
        default="127.0.0.1", description='an IP address such as "127.0.0.1"'
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="a port from 1 to 65535")
    textfile: Annotated[str, AfterValidator(_textfile)] | None = Field(
        default=None, description='a file such as "/var/lib/prometheus/node-exporter/dasec.prom"'
    )
    interval_s: int = Field(default=5, ge=1, le=300, description="from 1 to 300 s")

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.model_fields_set and self.port is None and self.textfile is None:
            raise ValueError("goes nowhere: give a `port` or a `textfile`")
        return self

    def outlets(self) -> Outlets | None:
        """As the exporter takes them; None where metrics are off."""
        if self.port is None and self.textfile is None:
            return None
        return Outlets(
            self.address, self.port, Path(self.textfile) if self.textfile else None, self.interval_s
        )
