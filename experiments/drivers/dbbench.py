"""RocksDB's db_bench (Debian: rocksdb-tools): threads that read, one that writes, in a closed loop, and those
that flush and compact what it writes."""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkDone, WorkOrder
from dasec.lab.kit.process import Child, held

from .options import absent, options_of, refusal, whole
from .program import Benchmark, Program, found

OPTIONS: Mapping[str, str] = {
    "keys": "20000",
    "value-bytes": "400",
    "memtable-kb": "256",
    "write-kb-per-s": "500",
}

BEHIND = 2
"""Its low thread compacts, the high one flushes."""

FILLED = "fillseq "
"""How the line begins that it prints when all keys are there."""

NOTES = (
    "reads of the warm-up are counted",
    "times of reads are RocksDB's own, of a closed loop: what a thread waits between two is not in them",
)


def parse(text: str) -> WorkDone:
    """Reads, and RocksDB's own times of them. ValueError where nothing was flushed or compacted."""
    for what, name in (("flushed", "db.flush"), ("compacted", "compaction.times")):
        if not found(rf"^rocksdb\.{name}\.micros .*COUNT : (\d+)", text):
            raise ValueError(f"{what} nothing: ask for more seconds, or for more to be written")
    times = r"^rocksdb\.db\.get\.micros "
    reads = found(times + r".*COUNT : (\d+)", text)
    return WorkDone(
        work=found(r"^readwhilewriting +:.* (\d+) operations;", text),
        unit="reads",
        seconds=found(r"^readwhilewriting +:.* ([\d.]+) seconds ", text),
        figures={
            "get_mean_us": found(times + r".*SUM : (\d+)", text) / max(1.0, reads),
            "get_p95_us": found(times + r".*P95 : ([\d.]+)", text),
            "get_p99_us": found(times + r".*P99 : ([\d.]+)", text),
            "get_max_us": found(times + r".*P100 : ([\d.]+)", text),
        },
        notes=NOTES,
    )


@dataclass(slots=True)
class Filled(Program):
    """It writes all keys before it waits to be told to begin."""

    def await_up(self) -> None:
        """All keys are there."""
        log = self.child.log
        self.child.wait_until(
            lambda: FILLED in log.read_text(encoding="utf-8", errors="replace"), "is filled"
        )

    def stop(self) -> None:
        """It, and its files."""
        Program.stop(self)  # a class with slots is made anew: super() has the old one
        shutil.rmtree(self.order.folder / "data", ignore_errors=True)


@dataclass(frozen=True, slots=True)
class DbBench(Benchmark):
    """`threads` are those that read and one that writes; all have one name, so no oracle knows them."""

    name: str = "db-bench"

    def missing(self) -> str | None:
        return absent("db_bench", "rocksdb-tools")

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads + BEHIND

    def start(self, order: WorkOrder, place: Place) -> Filled:
        options = options_of(order, OPTIONS)
        numbers = {name: whole(order, name, text) for name, text in options.items()}
        if order.threads < 2:
            raise refusal(order, "threads", f"must be at least 2, one of them writes, got '{order.threads}'")
        order.folder.mkdir(parents=True)
        fill, measure = commands(order, numbers)
        first = ("/bin/sh", "-c", f'{shlex.join(fill)} && exec "$@"', "filled")
        child = Child.start(order.name, place, (*first, *held(measure)), order.folder / "log")
        return Filled(order, child, parse)


def commands(order: WorkOrder, numbers: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What fills it, and what reads and writes. db_bench takes whole seconds only: they are rounded up."""
    both = {
        "db": order.folder / "data",
        "num": numbers["keys"],
        "value_size": numbers["value-bytes"],
        "write_buffer_size": 1024 * numbers["memtable-kb"],
        "level0_file_num_compaction_trigger": 2,
        "compression_type": "none",
        "seed": order.seed or 1,
        "progress_reports": "false",
    }
    measured = {
        **both,
        "use_existing_db": "true",
        "duration": math.ceil(order.total_s),
        "threads": order.threads - 1,  # the one that writes comes on top
        "benchmark_write_rate_limit": 1024 * numbers["write-kb-per-s"],
        "statistics": "true",
    }
    return _words("fillseq", both), _words("readwhilewriting", measured)


def _words(benchmark: str, told: Mapping[str, object]) -> tuple[str, ...]:
    return ("db_bench", f"--benchmarks={benchmark}", *(f"--{name}={value}" for name, value in told.items()))
