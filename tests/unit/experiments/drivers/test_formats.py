"""What programs print, as they print it, and what they print when something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.lab.kit.driver import WorkOrder
from experiments.drivers import dbbench, hackbench, schbench, stressng, sysbench

# sysbench 1.0.20: cpu --threads=1 --report-checkpoints=1 --time=2
SYSBENCH = """\
Threads started!

[ 1s ] Checkpoint report:
CPU speed:
    events per second:  2455.52

General statistics:
    total time:                          1.0002s
    total number of events:              2460

Latency (ms):
         min:                                    0.39
         avg:                                    0.41
         max:                                    3.99
         95th percentile:                        0.44
         sum:                                 1000.40

CPU speed:
    events per second:  2428.47

General statistics:
    total time:                          2.0002s
    total number of events:              2428

Latency (ms):
         min:                                    0.39
         avg:                                    0.42
         max:                                    3.66
         95th percentile:                        0.45
         sum:                                  997.75
"""

# stress-ng 0.15.06: --cpu 1 --yaml
STRESS_NG = """\
metrics:
    - stressor: cpu
      bogo-ops: 787
      bogo-ops-per-second-usr-sys-time: 1572.104043
      bogo-ops-per-second-real-time: 391.129984
      wall-clock-time: 2.012119
      user-time: 0.493348
      system-time: 0.007255
      cpu-usage-per-instance: 24.879396
"""

# schbench 1.0: two reports, of which the second covers the first
SCHBENCH = """\
Wakeup Latencies percentiles (usec) runtime 10 (s) (602 total samples)
          50.0th: 68         (177 samples)
          90.0th: 1570       (236 samples)
        * 99.0th: 74880      (54 samples)
          99.9th: 375296     (6 samples)
          min=1, max=375290
Request Latencies percentiles (usec) runtime 10 (s) (596 total samples)
          50.0th: 83072      (179 samples)
        * 99.0th: 366080     (54 samples)
          min=16122, max=415677
RPS percentiles (requests) runtime 10 (s) (11 total samples)
          20.0th: 57         (5 samples)
        * 50.0th: 58         (1 samples)
          min=55, max=61
current rps: 55.93
Wakeup Latencies percentiles (usec) runtime 20 (s) (1209 total samples)
          50.0th: 69         (354 samples)
        * 99.0th: 85376      (108 samples)
          99.9th: 262656     (11 samples)
          min=1, max=375290
Request Latencies percentiles (usec) runtime 20 (s) (1202 total samples)
          50.0th: 81792      (360 samples)
        * 99.0th: 360960     (107 samples)
          min=16122, max=415677
average rps: 60.10
"""

HACKBENCH = """\
at 100.00
Running in threaded mode with 1 groups using 4 file descriptors each (== 4 tasks)
Each sender will pass 1000 messages of 100 bytes
Time: 1.000
at 101.00
Running in threaded mode with 1 groups using 4 file descriptors each (== 4 tasks)
Each sender will pass 1000 messages of 100 bytes
Time: 2.000
at 103.00
Running in threaded mode with 1 groups using 4 file descriptors each (== 4 tasks)
"""

# db_bench of RocksDB 7.8.3: fillseq, then readwhilewriting --threads=1 --duration=1 --statistics
DB_BENCH = """\
DB path: [/tmp/db]
fillseq      :      20.374 micros/op 20950 ops/sec 0.095 seconds 2000 operations;    2.3 MB/s
DB path: [/tmp/db]
readwhilewriting :       4.960 micros/op 195684 ops/sec 1.032 seconds 201999 operations; \
  21.6 MB/s (201999 of 201999 found)
rocksdb.db.get.micros P50 : 2.419341 P95 : 4.493123 P99 : 5.833750 P100 : 20750.000000 \
COUNT : 201999 SUM : 916701
rocksdb.compaction.times.micros P50 : 4400.000000 P95 : 7242.000000 P99 : 7242.000000 P100 : 7242.000000 \
COUNT : 2 SUM : 10583
rocksdb.compaction.times.cpu_micros P50 : 2650.000000 P95 : 2799.000000 P99 : 2799.000000 P100 : 2799.000000 \
COUNT : 2 SUM : 5449
rocksdb.blobdb.get.micros P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 \
COUNT : 0 SUM : 0
rocksdb.db.flush.micros P50 : 4950.000000 P95 : 8954.000000 P99 : 8954.000000 P100 : 8954.000000 \
COUNT : 5 SUM : 24723
"""


def test_sysbench_counts_from_its_checkpoint_on() -> None:
    outcome = sysbench.parse(SYSBENCH)
    assert outcome.work == 2428
    assert outcome.seconds == pytest.approx(1.0)
    assert outcome.figures == {"event_mean_ms": 0.42, "event_p95_ms": 0.45, "event_max_ms": 3.66}


def test_sysbench_is_told_a_seed_that_it_takes() -> None:
    def told(seed: int) -> str:
        order = WorkOrder("any", 1, 0.0, seed, 0.0, 1.0, Path())
        (found,) = (word for word in sysbench.command(order, "cpu", {}) if word.startswith("--rand-seed="))
        return found.partition("=")[2]

    assert [told(seed) for seed in (0, 7, 2**31 - 1)] == ["1", "7", "1"]
    assert int(told(1_132_364_603_000_006)) < 2**31


def test_sysbench_without_warm_up_counts_all() -> None:
    outcome = sysbench.parse(SYSBENCH.split("CPU speed:", 2)[2])
    assert (outcome.work, outcome.seconds) == (2428, 2.0002)


def test_stress_ng_counts_all_its_time_and_says_so() -> None:
    outcome = stressng.parse(STRESS_NG)
    assert (outcome.work, outcome.seconds) == (787, 2.012119)
    assert outcome.figures["cpu_s"] == pytest.approx(0.500603)
    assert outcome.notes == (stressng.NOTE,)


def test_the_last_report_of_schbench_counts() -> None:
    outcome = schbench.parse(SCHBENCH)
    assert outcome.work == pytest.approx(60.10 * 20)
    assert outcome.seconds == 20
    assert outcome.figures == {
        "wakeup_p50_us": 69,
        "wakeup_p99_us": 85376,
        "wakeup_p999_us": 262656,
        "request_p50_us": 81792,
        "request_p99_us": 360960,
    }


@pytest.mark.parametrize(
    ("warmup_s", "work", "seconds"), [(0.0, 8000, 3.0), (0.5, 6000, 2.5), (1.0, 4000, 2.0), (2.0, 2000, 1.0)]
)
def test_the_part_of_a_hackbench_run_behind_the_warm_up_counts(
    warmup_s: float, work: float, seconds: float
) -> None:
    outcome = hackbench.parse(HACKBENCH, warmup_s, messages=4000)
    assert outcome.work == pytest.approx(work)
    assert outcome.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "FATAL: Invalid value for the 'time' option: '1.5'", "General statistics:\n total time: soon\n"],
)
def test_what_sysbench_does_not_print_is_an_error_of_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="printed no line like") as caught:
        sysbench.parse(text)
    assert "\n" not in str(caught.value)


def test_stress_ng_without_metrics_is_an_error() -> None:
    with pytest.raises(ValueError, match="bogo-ops"):
        stressng.parse("system-info:\n    cpus: 2\n...\n")


def test_an_old_schbench_is_named() -> None:
    with pytest.raises(ValueError, match=r"before version 1\.0"):
        schbench.parse("Latency percentiles (usec)\n\t50.0th: 45\n\t*99.0th: 117\n")


@pytest.mark.parametrize(("text", "warmup_s"), [("at 1.00\nRunning\n", 0.0), (HACKBENCH, 3.0)])
def test_too_long_a_hackbench_run_is_named(text: str, warmup_s: float) -> None:
    with pytest.raises(ValueError, match="ask for fewer loops"):
        hackbench.parse(text, warmup_s, 4000)


def test_db_bench_counts_reads_and_has_rocksdbs_own_times() -> None:
    outcome = dbbench.parse(DB_BENCH)
    assert (outcome.work, outcome.unit, outcome.seconds) == (201999, "reads", 1.032)
    assert outcome.latencies is None
    assert outcome.figures == {
        "get_mean_us": pytest.approx(4.53815, abs=1e-5),
        "get_p95_us": 4.493123,
        "get_p99_us": 5.83375,
        "get_max_us": 20750,
    }


@pytest.mark.parametrize(
    ("counted", "instead", "complaint"),
    [
        ("COUNT : 5 SUM : 24723", "COUNT : 0 SUM : 0", "flushed nothing"),
        ("COUNT : 2 SUM : 10583", "COUNT : 0 SUM : 0", "compacted nothing"),
        ("rocksdb.db.flush", "rocksdb.db.other", "printed no line like"),
        ("readwhilewriting", "readrandom", "printed no line like"),
    ],
)
def test_a_db_bench_without_a_flush_a_compaction_or_reads_is_an_error(
    counted: str, instead: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        dbbench.parse(DB_BENCH.replace(counted, instead))
