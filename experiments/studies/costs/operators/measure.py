"""What explaining, watching and being scraped cost: times of `dasec explain`, `dasec top` and the metrics.

    python experiments/studies/costs/operators/measure.py [--vcpus 256] [--gib 1]

The record is as long as --gib says; all but its last MiBs are one block over and over, whose checksums nobody
looks at, because nobody reads there.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from dasec.commands.explain import explain
from dasec.commands.top import Recent, picture
from dasec.config.metrics import Outlets
from dasec.config.subject import Subject
from dasec.hosts.fake.fake import EXACT
from dasec.log import Announcer
from dasec.metrics.exporter import Exporter
from dasec.model import (
    Change,
    Core,
    Decision,
    Knob,
    Knobs,
    Outcome,
    Period,
    PolicyState,
    Reason,
    Result,
    ThreadState,
    Topology,
    Usage,
    Vcpu,
    VcpuId,
    Workload,
)
from dasec.policies import Parameters
from dasec.record.entries import Entry, Stages
from dasec.record.file import RecordFile
from dasec.record.tail import RecordTail

STATE = PolicyState()
PER_WORKLOAD = 8
CHANGES = 0.05
REPEATS = 30
BLOCK_BYTES = 8 << 20


def entries(vcpus: int, count: int) -> list[Entry]:
    """Periods of a busy host: every vCPU ran, one in twenty got a new weight."""
    chance = random.Random(1)
    cores = tuple(map(Core, range(64)))
    ids = [VcpuId(1000 + number // PER_WORKLOAD, 5000 + number, 7) for number in range(vcpus)]
    workloads = tuple(
        Workload(
            f"vm-{first // PER_WORKLOAD}",
            1024,
            tuple(
                Vcpu(vcpu, f"CPU {number}/KVM", frozenset(cores))
                for number, vcpu in enumerate(ids[first : first + PER_WORKLOAD])
            ),
        )
        for first in range(0, vcpus, PER_WORKLOAD)
    )
    topology = Topology(cores, dict.fromkeys(cores, 0))
    knobs = dict.fromkeys(ids, Knobs(1024, 3_000_000, frozenset(cores)))
    core_of = dict.fromkeys(ids, Core(0))
    made = []
    for index in range(count):
        usage = {
            vcpu: Usage(
                chance.randrange(10**6, 4 * 10**7),
                chance.randrange(10**7),
                chance.randrange(1, 90),
                ThreadState.READY,
                chance.randrange(3),
            )
            for vcpu in ids
        }
        changed = [vcpu for vcpu in ids if chance.random() < CHANGES]
        reasons = tuple(
            Reason(vcpu, Knob.WEIGHT, "critical.path", (("score", 9), ("rank", 4))) for vcpu in changed
        )
        results = tuple(
            Result(Change(vcpu, Knob.WEIGHT, 1024, 1100, "critical.path"), Outcome.APPLIED)
            for vcpu in changed
        )
        period = Period(index, 80_000_000, topology, workloads, usage, knobs, core_of)
        stages = Stages(600_000, 400_000, 100_000, 150_000)
        made.append(Entry(index * 80_000_000, 0, period, Decision({}, reasons, STATE), results, (), stages))
    return made


def record(path: Path, seen: list[Entry], total_bytes: int) -> None:
    """A record of that length, whose end is whole."""
    block = path.with_name("block")
    file = RecordFile(block, "none", Parameters(), Announcer(), max_bytes=1 << 40, files=1)
    for number in range(10**9):
        file.write(seen[number % len(seen)], STATE)
        if block.stat().st_size > BLOCK_BYTES:
            break
    file.close()
    content = block.read_bytes()
    with path.open("wb") as whole:
        for _ in range(total_bytes // len(content)):
            whole.write(content)
    block.unlink()


def times_ms(step: Callable[[], object], repeats: int = REPEATS) -> dict[str, float]:
    """Median and largest time of a step."""
    took = []
    for _ in range(repeats):
        started_ns = time.perf_counter_ns()
        step()
        took.append((time.perf_counter_ns() - started_ns) / 1e6)
    return {"median_ms": round(statistics.median(took), 3), "max_ms": round(max(took), 3)}


def command(*arguments: str) -> Callable[[], object]:
    """`dasec` with these arguments, as a user runs it."""
    return lambda: subprocess.run(
        [sys.executable, "-m", "dasec", *arguments], check=True, capture_output=True
    )


def measure(vcpus: int, total_bytes: int) -> dict[str, object]:
    """All figures."""
    seen = entries(vcpus, 100)
    with tempfile.TemporaryDirectory(prefix="dasec-operators-") as folder:
        path = Path(folder) / "record"
        record(path, seen, total_bytes)
        subject = Subject("critical", 80, False, EXACT)
        exporter = Exporter(Outlets("127.0.0.1", 19_754, None, 300), Announcer())
        quick = Exporter(Outlets("127.0.0.1", None, None, 0), Announcer())
        exporter.begin(subject)
        quick.begin(subject)
        each = iter(seen * 10)
        exporter.write(next(each), STATE)
        quick.write(next(each), STATE)
        counted = times_ms(lambda: exporter.write(next(each), STATE), 300)
        rendered = times_ms(lambda: quick.write(next(each), STATE))
        exporter.text = quick.text

        def scrape() -> bytes:
            with urllib.request.urlopen("http://127.0.0.1:19754/metrics") as answer:
                return bytes(answer.read())

        scraped = times_ms(scrape, 100)
        exporter.close()
        return {
            "vcpus": vcpus,
            "record_bytes": path.stat().st_size,
            "explain_from_record": times_ms(lambda: explain(path, "vm-0", None)),
            "explain_command": times_ms(command("explain", "vm-0", "--record", str(path)), 10),
            "help_command": times_ms(command("--help"), 10),
            "top_first_look": times_ms(lambda: picture(Recent(RecordTail(path)), None, 24), 10),
            "count_a_period": counted,
            "count_and_render": rendered,
            "text_bytes": len(quick.text),
            "scrape": scraped,
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vcpus", type=int, default=256)
    parser.add_argument("--gib", type=float, default=1.0)
    told = parser.parse_args()
    print(json.dumps(measure(told.vcpus, int(told.gib * (1 << 30))), indent=2))


if __name__ == "__main__":
    main()
