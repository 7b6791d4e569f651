"""What the daemon recorded of who woke whom, held against what guests counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dasec.record.checksum import unseal
from dasec.record.entries import Decoder
from dasec.record.lines import begins_anew
from guests.bare.client import VcpuStatistics

Edge = tuple[int, int]
"""The waking and the woken vCPU's numbers."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Wake-ups of vCPUs by vCPUs of the same guest: as the guest counted, as the daemon did, in both."""

    true: int
    said: int
    both: int

    @property
    def precision(self) -> float:
        """Of what the daemon said, the part that the guest counted."""
        return self.both / self.said if self.said else 0.0

    @property
    def recall(self) -> float:
        """Of what the guest counted, the part that the daemon said."""
        return self.both / self.true if self.true else 0.0


def agreement(true: Mapping[Edge, int], said: Mapping[Edge, int]) -> Agreement:
    """Edge by edge: what one of them has more than the other is not in both."""
    both = sum(min(count, said.get(edge, 0)) for edge, count in true.items())
    return Agreement(sum(true.values()), sum(said.values()), both)


def total(of: Sequence[Agreement]) -> Agreement:
    """Of several guests."""
    return Agreement(sum(one.true for one in of), sum(one.said for one in of), sum(one.both for one in of))


def counted(before: Sequence[VcpuStatistics], after: Sequence[VcpuStatistics]) -> Counter[Edge]:
    """By the guest, between two looks."""
    return Counter(
        {
            (waker, woken): new - old
            for woken, (earlier, later) in enumerate(zip(before, after, strict=True))
            for waker, (old, new) in enumerate(zip(earlier.woken_by, later.woken_by, strict=True))
            if new > old
        }
    )


def recorded(record: Path, threads: Mapping[int, int]) -> Counter[Edge]:
    """By the daemon, in all periods of its record; `threads` are the vCPUs' threads by number."""
    numbers = {tid: vcpu for vcpu, tid in threads.items()}
    found: Counter[Edge] = Counter()
    chain, decoder = 0, Decoder()
    for line in record.read_bytes().split(b"\n")[:-1]:
        anew = begins_anew(line)
        opened = unseal(line, 0 if anew else chain)
        if opened is None:
            raise ValueError(f"{record}: a checksum is wrong")
        body, chain = opened
        if anew:
            decoder = Decoder()
            continue
        period, _ = decoder.period(body)
        for woken, used in period.usage.items():
            for waker, count in used.wakers:
                if waker.tid in numbers and woken.tid in numbers:
                    found[numbers[waker.tid], numbers[woken.tid]] += count
    return found
