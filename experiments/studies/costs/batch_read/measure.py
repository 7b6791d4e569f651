"""One BPF batch read against reading two files a thread: the same threads, taken in turns.

    python experiments/studies/costs/batch_read/measure.py [VCPUS] [BLOCKS]

Four readers go over all threads once in 80 ms, in interleaved blocks of 10 periods:

- files: schedstat and stat of every thread, kept descriptors, parsed;
- sampler: what the mainline host does (docs/decisions/0007-read-where-it-matters.md);
- batch: the BPF batch read, rows of who was awake;
- all: the same with a row for every thread.

Then 300 times without a pause, for what they cost with warm caches.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from dasec.bpf.thread_counters import ThreadCounters, ThreadTotals
from dasec.hosts.mainline.sample import Sampler
from dasec.hosts.threads.thread import ManagedThread
from dasec.lab.overhead.burners import burden, burning
from dasec.linux import procfs
from dasec.model import Core, Counters, Knobs, ThreadState, Vcpu, VcpuId

PERIOD_S = 0.080
WARM_REPEATS = 300
BLOCK = 10

Reader = Callable[[], object]


def threads_of(pids: list[int]) -> list[ManagedThread]:
    found = []
    for pid in pids:
        for tid in procfs.thread_ids(pid):
            kept = procfs.KeptThread(pid, tid)
            vcpu = Vcpu(VcpuId(pid, tid, kept.first_stat.start_ticks), "load", frozenset({Core(0)}))
            found.append(ManagedThread(vcpu, kept, 0, Core(0), Knobs(None, None, None), "/", None))
    return found


def two_files(threads: list[ManagedThread]) -> Sequence[tuple[int, ...]]:
    rows = []
    for thread in threads:
        numbers = os.pread(thread.kept.schedstat, 64, 0).split()
        line = os.pread(thread.kept.stat, 1024, 0)
        tail = line[line.rindex(b")") + 2 :].split()
        rows.append((int(numbers[0]), int(numbers[1]), int(numbers[2]), tail[0] == b"R", int(tail[36])))
    return rows


def microseconds(read: Reader) -> float:
    started = time.perf_counter_ns()
    read()
    return (time.perf_counter_ns() - started) / 1000


def cold(readers: dict[str, Reader], blocks: int) -> dict[str, list[float]]:
    """Blocks of periods with one reader each, in turns; the first of a block is not counted."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(blocks):
        for name, read in readers.items():
            read()
            for _ in range(BLOCK):
                time.sleep(PERIOD_S)
                times[name].append(microseconds(read))
    return times


def warm(readers: dict[str, Reader]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(WARM_REPEATS):
        for name, read in readers.items():
            read()
            times[name].append(microseconds(read))
    return times


def summary(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "median_us": round(statistics.median(values), 1),
            "mean_us": round(statistics.fmean(values), 1),
            "p95_us": round(statistics.quantiles(values, n=20)[-1], 1),
        }
        for name, values in times.items()
    }


def main() -> None:
    vcpus = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    cores = len(os.sched_getaffinity(0))
    with burning(burden(vcpus, None, PERIOD_S, cores)) as workloads:
        threads = threads_of([pid for pids in workloads for pid in pids])
        sampler = Sampler(
            threads, {thread.id: Counters(0, 0, 0, ThreadState.UNKNOWN, Core(0)) for thread in threads}
        )
        batch, everybody = ThreadCounters(len(threads)), ThreadCounters(len(threads))
        for at, thread in enumerate(threads):
            assert batch.seat(at, thread.id.tid, thread.id.start_ticks)
            assert everybody.seat(at, thread.id.tid, thread.id.start_ticks)
        lengths: list[int] = []

        def changed() -> list[ThreadTotals]:
            rows = batch.read()
            lengths.append(len(rows))
            return rows

        readers: dict[str, Reader] = {
            "files": lambda: two_files(threads),
            "sampler": lambda: sampler.take(time.monotonic_ns()),
            "batch": changed,
            "all": lambda: everybody.read(sleepers=True),
        }
        result = {"threads": len(threads), "cold": summary(cold(readers, blocks))}
        result["rows_of_batch"] = round(statistics.fmean(lengths), 1)
        result["warm"] = summary(warm(readers))
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
