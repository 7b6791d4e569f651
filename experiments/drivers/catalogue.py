"""All applications, by name."""

from __future__ import annotations

from collections.abc import Mapping

from dasec.lab.kit.driver import Driver

from . import stressng, sysbench
from .beside import BATCH
from .dbbench import DbBench
from .fanout import FanOut
from .gluoncv import GLUONCV
from .hackbench import Hackbench
from .schbench import Schbench
from .servers import SERVERS


def _all() -> tuple[Driver, ...]:
    return (
        FanOut(),
        *SERVERS.values(),
        *(one for one in GLUONCV if one.name not in SERVERS),
        *BATCH.values(),
        sysbench.Sysbench("sysbench-threads", "threads", sysbench.THREADS),
        stressng.StressNg("stress-ng-capped", stressng.CAPPED),
        stressng.StressNg("stress-ng-burstable", stressng.BURSTABLE),
        Schbench(),
        Hackbench(),
        DbBench(),
    )


DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in _all()}
