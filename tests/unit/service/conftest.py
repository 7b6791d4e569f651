"""Every test finds the daemon's logger as at first, and what is logged can be seen."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from dasec.log import LOGGER


@pytest.fixture(autouse=True)
def _fresh_logger(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    before = LOGGER.handlers[:], LOGGER.propagate, LOGGER.level
    LOGGER.handlers[:], LOGGER.propagate = [], True
    caplog.set_level(logging.INFO, LOGGER.name)
    yield
    LOGGER.handlers[:], LOGGER.propagate, LOGGER.level = before
