"""All applications, by name."""

from __future__ import annotations

from collections.abc import Mapping

from .driver import Driver

DRIVERS: Mapping[str, Driver] = {}
