"""An exporter that tests feed by hand."""

from __future__ import annotations

from pathlib import Path

from dasec.config.metrics import Outlets
from dasec.config.subject import Subject
from dasec.hosts.fake.fake import EXACT
from dasec.log import Announcer
from dasec.metrics.exporter import Exporter

LOOPBACK = "127.0.0.1"
SUBJECT = Subject("dasec", 80, False, EXACT)


class Clock:
    """Each look is a second after the one before, so that every period is rendered."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 1_000_000_000
        return self.now_ns


def exporter(
    port: int | None = None,
    textfile: Path | None = None,
    address: str = LOOPBACK,
    directory: Path | None = None,
) -> Exporter:
    told = Exporter(Outlets(address, port, textfile, 1), Announcer(), directory, Clock())
    told.begin(SUBJECT)
    return told
