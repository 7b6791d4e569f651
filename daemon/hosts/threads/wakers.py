"""Who woke each vCPU, put into its counters from a source of wake-up edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...bpf.edges import Activity, WakeEdges
from ...bpf.libbpf import BpfUnavailable
from ...model import Counters, Level, VcpuId, Workload
from .notices import Notices

Totals = tuple[tuple[VcpuId, int], ...]


class Wakers:
    """Keeps a source following the managed threads, and adds what it counted."""

    def __init__(self, edges: WakeEdges, notices: Notices) -> None:
        self._edges, self._notices = edges, notices
        self.unheard: Mapping[str, int] = {}
        """By workload: how many threads there is no room for; nobody counts their wake-ups."""
        self.lost = self.missed = 0
        """As in a Reading."""
        self._numbers: dict[str, int] = {}
        self._plain: Mapping[VcpuId, Counters] = {}
        self._threads: Mapping[VcpuId, Activity] = {}
        self._full: dict[VcpuId, Counters] = {}
        self._refused = False

    def follow(self, workloads: Sequence[Workload]) -> None:
        """These are the workloads now. A name keeps its number, so that who stays is not counted anew."""
        workload_of = {
            vcpu.id: self._numbers.setdefault(workload.name, len(self._numbers))
            for workload in workloads
            for vcpu in workload.vcpus
        }
        left_out = self._edges.follow(workload_of)
        self._say_who_is_unheard(workloads, {name: left_out.get(at, 0) for name, at in self._numbers.items()})

    @property
    def unwatched(self) -> bool:
        """Whether wake-ups could be followed and are not at present."""
        return self._edges.level is not Level.NONE and not self._edges.watching

    def watch(self, wanted: bool) -> None:
        """Follow wake-ups or leave it. If the kernel does not let us any more, an operator hears of it."""
        try:
            self._edges.watch(wanted)
        except (BpfUnavailable, OSError) as reason:
            if not self._refused:
                self._notices.say("wake-ups not followed", f"wake-ups cannot be followed now: {reason}")
            self._refused = True
            return
        if wanted and self._refused:
            self._refused = False
            self._notices.say("wake-ups not followed", "wake-ups are followed again")

    def added_to(self, plain: dict[VcpuId, Counters]) -> dict[VcpuId, Counters]:
        """A copy with who woke whom, how often each woke, and (level full) chains and preemptions.

        Nothing new about a thread gives the very object of the last time: that is how a period
        knows a thread that slept through.
        """
        if self._edges.level is Level.NONE:
            return plain.copy()
        reading = self._edges.read()
        self.lost, self.missed = reading.lost, reading.missed
        for who in self._stirred(plain, reading.threads):
            now, activity = plain[who], reading.threads.get(who)
            if activity is not None:
                wakers = sorted([(waker, edge.wakeups) for waker, edge in reading.wakers.get(who, ())])
                now = self._filled(now, activity, tuple(wakers))
            self._full[who] = now
        self._plain, self._threads = plain.copy(), reading.threads
        return self._full.copy()

    def _say_who_is_unheard(self, workloads: Sequence[Workload], left_out: Mapping[str, int]) -> None:
        for workload in workloads:
            name, count = workload.name, left_out.get(workload.name, 0)
            if bool(count) == (name in self.unheard):
                continue
            line = f"workload {name}: all wake-ups are counted again"
            if count:
                line = (
                    f"workload {name}: wake-ups of {count} of {len(workload.vcpus)} threads are not counted:"
                    " there are more threads than slots, and the others are its part: manage fewer threads"
                )
            self._notices.say(f"workload {name}: wake-ups that are not counted", line)
        self.unheard = {one.name: left_out[one.name] for one in workloads if left_out.get(one.name)}

    def _stirred(
        self, plain: Mapping[VcpuId, Counters], threads: Mapping[VcpuId, Activity]
    ) -> Iterable[VcpuId]:
        """Whose counters are other ones than the last time. Two comparisons a thread, and nobody is hashed:
        a period costs what it touches (docs/overhead.md)."""
        if list(plain) != list(self._plain) or list(threads) != list(self._threads):
            self._full = {who: self._full.get(who, now) for who, now in plain.items()}
            return [who for who, now in plain.items() if not self._same(who, now, threads.get(who))]
        ran = [
            who
            for who, now, then in zip(plain, plain.values(), self._plain.values(), strict=True)
            if now is not then
        ]
        woken = [
            who
            for who, now, then in zip(threads, threads.values(), self._threads.values(), strict=True)
            if now is not then and _news(now) != _news(then) and who in plain
        ]
        return dict.fromkeys((*ran, *woken))

    def _same(self, who: VcpuId, now: Counters, activity: Activity | None) -> bool:
        """Has this thread done nothing since the last time, and was it followed then as now?"""
        then = self._threads.get(who)
        if self._plain.get(who) is not now or activity is None or then is None:
            return False
        return _news(activity) == _news(then)

    def _filled(self, plain: Counters, activity: Activity, wakers: Totals) -> Counters:
        woken, chain_ns, outward = _news(activity)
        on_cpu_ns, ready_ns, dispatches, state, core, preemptions, late = plain[:7]
        if self._edges.level is Level.EDGES:
            counted = preemptions, late, wakers, woken, activity.external, plain.chain_ns, outward
        else:
            counted = activity.preemptions, late, wakers, woken, activity.external, chain_ns, outward
        # Like Counters(...), without the Python code of a named tuple's constructor (decision 0003).
        return tuple.__new__(Counters, (on_cpu_ns, ready_ns, dispatches, state, core, *counted))


def _news(activity: Activity) -> tuple[int, int, int]:
    """What tells whether a thread did anything: how often it was woken, its time in chains, and how often it
    woke others than siblings."""
    return activity.sibling + activity.external + activity.timer, activity.chain_ns, activity.outward
