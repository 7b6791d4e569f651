"""What reading the wake-edge monitor costs: CPU time of one reading of 256 threads, a part of which wake.

    python experiments/studies/costs/wake_cost/reading.py [READINGS]

The threads are a child's: each of the `awake` naps for 40 ms again and again.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from dasec.bpf.extent import Extent
from dasec.bpf.wake_edges import BpfEdges
from dasec.linux import procfs
from dasec.model import Level, VcpuId

THREADS = 256
PERIOD_S = 0.08
CROWD = """
import sys, threading, time
def nap(forever):
    while True:
        time.sleep(forever or 0.04)
for at in range(256):
    threading.Thread(target=nap, args=(0 if at < int(sys.argv[1]) else 1e6,), daemon=True).start()
print(flush=True)
time.sleep(1e6)
"""


def cost_us(awake: int, readings: int) -> list[float]:
    crowd = subprocess.Popen([sys.executable, "-c", CROWD, str(awake)], stdout=subprocess.PIPE)
    assert crowd.stdout is not None
    crowd.stdout.readline()
    monitor = BpfEdges(Extent(Level.FULL))
    costs = []
    try:
        tids = [tid for tid in procfs.thread_ids(crowd.pid) if tid != crowd.pid]
        starts = {tid: procfs.read_stat(crowd.pid, tid).start_ticks for tid in tids}
        monitor.follow({VcpuId(crowd.pid, tid, starts[tid]): 0 for tid in tids})
        monitor.read()
        for _ in range(readings):
            time.sleep(PERIOD_S)
            before_ns = time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID)
            monitor.read()
            costs.append((time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) - before_ns) / 1000)
    finally:
        monitor.close()
        crowd.kill()
        crowd.communicate()
    return costs


def main() -> None:
    readings = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for awake in (0, 16, 64, 256):
        costs = cost_us(awake, readings)
        p95 = statistics.quantiles(costs, n=20)[-1]
        print(f"{awake:4} of {THREADS} awake: median {statistics.median(costs):5.0f} µs, p95 {p95:5.0f} µs")


if __name__ == "__main__":
    main()
