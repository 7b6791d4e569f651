"""RCU's thread goes before all others while our scheduler has the whole host.

At its end the kernel waits for RCU, whose thread is still sched_ext's, while those that are born belong to
the kernel's own scheduler already and go first: as many that compute as there are CPUs, and the host stands
still (docs/decisions/0081-rcu-first.md). The end may come by a kill, so the thread is ahead all the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...bpf.libbpf import BpfUnavailable
from ...knobs import knob
from ...knobs.knob import KnobRef, Write
from ...knobs.realtime import ORDINARY, REAL_TIME
from ...linux import cpus, procfs
from ...linux.errors import ThreadGone
from ...log import LOGGER
from ...model import VcpuId
from ...safety.kernel import LinuxKernel
from ...safety.restore import put_back_each
from ..threads.ahead import WriteAhead, write_ahead

NAMES = frozenset({"rcu_preempt", "rcu_sched"})
"""Of the thread that waits for each grace period (rcu_spawn_gp_kthread() of kernel/rcu/tree.c), with a kernel
that can be preempted and without. One for a single CPU has none, and waits for nobody; in a pid namespace of
one's own no thread of the kernel's is seen."""

FIRST = 1
"""As the kernel itself does with rcutree.kthread_prio=1."""

_WITHOUT = "without which the host may stand still at the scheduler's end: partial mode does not need that"


@contextmanager
def rcu_first(journal: WriteAhead, proc: str = procfs.PROC, sysfs: str = cpus.SYSFS) -> Iterator[None]:
    """Its thread is real-time, unless it was; then what it was before. What cannot be put back stays in the
    journal. Raises BpfUnavailable where it cannot be made so."""
    if (why := unseen(proc, sysfs)) is not None:
        raise BpfUnavailable(why)
    refs = tuple(KnobRef(thread, REAL_TIME) for thread in _threads(proc))
    try:
        try:
            for ref in refs:
                _raise(ref, journal, proc)
        except OSError as error:
            raise BpfUnavailable(
                f"the thread of RCU cannot be made real-time ({error.strerror}), {_WITHOUT}"
            ) from error
        yield
    finally:
        held = [one for one in journal.outstanding() if one.ref in refs]
        done = put_back_each(held, (), (), LinuxKernel())
        journal.settle(done.settled())
        for line in done.summary().failed:
            LOGGER.warning("not put back: %s: run `dasec restore`", line)


def unseen(proc: str = procfs.PROC, sysfs: str = cpus.SYSFS) -> str | None:
    """In one line, that its thread is not seen from here; None if it is, or there is none."""
    if any(_threads(proc)) or len(cpus.possible(sysfs)) < 2:
        return None
    return f"the thread of RCU is not seen here (in a pid namespace of its own?), {_WITHOUT}"


def _raise(ref: KnobRef, journal: WriteAhead, proc: str) -> None:
    if (found := knob.read(ref, proc)) == ORDINARY:
        write_ahead(journal, Write(ref, found, FIRST), proc)


def _threads(proc: str) -> Iterator[VcpuId]:
    for pid in procfs.process_ids(proc):
        try:
            stat = procfs.read_stat(pid, pid, proc)
        except (ThreadGone, OSError):
            continue
        if stat.is_kernel_thread and stat.comm in NAMES:
            yield VcpuId(pid, pid, stat.start_ticks)
