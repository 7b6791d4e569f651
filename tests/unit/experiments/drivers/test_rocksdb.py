"""What RocksDB's driver is asked, without RocksDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.critical.names import matches
from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from experiments.drivers.servers import SERVERS

DRIVER = SERVERS["rocksdb"]


def order(**options: str) -> WorkOrder:
    told = {name.replace("_", "-"): text for name, text in options.items()}
    return WorkOrder("one", 2, 400, 1, 0.05, 0.3, Path("/nowhere"), told)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"housekeeping": "often"}, "one: housekeeping: must be one of true, false, got 'often'"),
        ({"memtable_kb": "8"}, "one: memtable-kb: must be a whole number from 64 on, got '8'"),
        ({"bgsave": "true"}, "one: bgsave: is no option of this application"),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(Refusal) as caught:
        DRIVER.critical(order(**options))
    (line,) = caught.value.lines
    assert line.startswith(complaint)


def test_those_that_serve_are_critical_and_those_that_flush_and_compact_are_vcpus_beside_them() -> None:
    names = {"serve-0": True, "serve-11": True, "rocksdb:low": False, "rocksdb:high": False, "bg-2": False}
    for name, critical in names.items():
        assert any(matches(one, name) for one in DRIVER.vcpu_names)
        assert any(matches(one, name) for one in DRIVER.critical(order())) == critical
    assert not any(matches(one, "dasec-rocksdb") for one in DRIVER.vcpu_names)
    assert DRIVER.vcpus(order(background="3")) == 2 + 2 + 3
