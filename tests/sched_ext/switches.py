"""What the kernel's own trace says of who ran when: CPUs of one core, waits, wake-ups. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SWITCH = re.compile(
    r"\[(\d+)\] \S+ +([\d.]+): sched_switch: .* prev_pid=(\d+) .* prev_state=(\S+) ==> .* next_pid=(\d+) "
)
WAKING = re.compile(r"\[(\d+)\] \S+ +([\d.]+): sched_waking: .* pid=(\d+) ")

IDLE = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """A thread on a CPU."""

    pid: int
    since_s: float
    until_s: float


@dataclass
class Trace:
    """Who ran on each CPU, one after another; how long threads waited, for any CPU and after a wake-up."""

    cpus: dict[int, list[Ran]] = field(default_factory=lambda: defaultdict(list))
    waits_s: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    wakes_s: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def ran_s(self, pid: int) -> float:
        """On all CPUs."""
        return sum(ran.until_s - ran.since_s for runs in self.cpus.values() for ran in runs if ran.pid == pid)


def read(lines: Iterable[str], pids: Iterable[int]) -> Trace:
    """Of the text of a trace of sched_switch and sched_waking. A thread of these that never ran in it has
    waited all the time."""
    trace, running = Trace(), dict[int, tuple[int, float]]()
    waiting, woken = dict[int, float](), dict[int, float]()
    seen, first_s, last_s = set[int](), 0.0, 0.0
    for line in lines:
        if found := SWITCH.search(line):
            cpu, now_s, before, after = int(found[1]), float(found[2]), int(found[3]), int(found[5])
            if cpu in running:
                trace.cpus[cpu].append(Ran(*running[cpu], now_s))
            running[cpu] = after, now_s
            seen |= {before, after}
            if found[4].startswith("R"):
                waiting[before] = now_s
            if after in waiting:
                trace.waits_s[after].append(now_s - waiting.pop(after))
            if after in woken:
                trace.wakes_s[after].append(now_s - woken.pop(after))
        elif found := WAKING.search(line):
            now_s = float(found[2])
            woken[int(found[3])] = now_s
            waiting.setdefault(int(found[3]), now_s)
        else:
            continue
        first_s, last_s = first_s or now_s, now_s
    for cpu, (pid, since_s) in running.items():
        trace.cpus[cpu].append(Ran(pid, since_s, last_s))
    for pid, since_s in (dict.fromkeys(set(pids) - seen, first_s) | waiting).items():
        trace.waits_s[pid].append(last_s - since_s)
    return trace


def together_s(trace: Trace, cores: Iterable[Sequence[int]], cookies: Mapping[int, int]) -> list[float]:
    """How long threads of different cookies ran on two CPUs of one core, each time. 0 is a cookie, too."""
    found = []
    for one, other in cores:
        theirs = [ran for ran in trace.cpus[other] if ran.pid != IDLE]
        at = 0
        for ran in trace.cpus[one]:
            if ran.pid == IDLE:
                continue
            while at < len(theirs) and theirs[at].until_s <= ran.since_s:
                at += 1
            for beside in theirs[at:]:
                if beside.since_s >= ran.until_s:
                    break
                if cookies.get(ran.pid, 0) != cookies.get(beside.pid, 0):
                    found.append(min(ran.until_s, beside.until_s) - max(ran.since_s, beside.since_s))
    return found
