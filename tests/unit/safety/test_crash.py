"""Whenever the daemon dies, between any two of its steps or inside one, every knob comes back."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dasec.knobs.knob import KnobRef, NativeValue, Write
from dasec.knobs.masks import AFFINITY
from dasec.safety.journal.journal import Journal
from dasec.safety.restore import put_all_back

from .knobs_for_tests import group_of, mask_of, slice_of, weight_of
from .small_kernel import MOUNT, SmallKernel, Thread

LIVES = 150
THREADS = 5


def machine() -> SmallKernel:
    kernel = SmallKernel()
    for tid in range(100, 100 + THREADS):
        kernel.make_group(f"/vm/vcpu{tid}", 1024)
        kernel.start(slice_of(tid).vcpu, "/vm/vcpu100" if tid == 100 else "/")
    return kernel


def wish(chance: random.Random, kernel: SmallKernel) -> Write:
    """One write as the host would ask for it: the prior is what the kernel has."""
    tid = chance.randrange(100, 100 + THREADS)
    match chance.randrange(3):
        case 0:
            ref, new = slice_of(tid), chance.randrange(2, 9) * 1_000_000
        case 1:
            ref, new = weight_of(tid, f"/vm/vcpu{tid}"), chance.randrange(128, 8192)
        case _:
            return Write(mask_of(tid), kernel.read(mask_of(tid)), (chance.randrange(4),))
    return Write(ref, kernel.read(ref), new)


class Life:
    """One daemon from its start to its sudden end; `stop` is the step at which it ends."""

    def __init__(self, directory: Path, kernel: SmallKernel, chance: random.Random) -> None:
        self.chance = chance
        self.kernel = kernel
        self.file = directory / "journal"
        self.journal, self.notices = Journal.open(directory, wait_s=0.0)
        self.foreign: dict[KnobRef, NativeValue] = {}

    def live(self) -> None:
        for _ in range(self.chance.randrange(8)):
            if not self.period():
                break
            self.third_party()
        self.journal.close()

    def period(self) -> bool:
        """One period; False: died in it."""
        writes = [wish(self.chance, self.kernel) for _ in range(6)]
        writes = [one for one in writes if one.ref not in self.foreign]
        size = self.file.stat().st_size
        self.journal.begin(writes)
        fate = self.chance.random()
        if fate < 0.1:
            self.tear(size)
            return False
        refused: list[KnobRef] = []
        for one in writes:
            if self.chance.random() < 0.05:
                return False
            if self.chance.random() < 0.15:
                refused.append(one.ref)
            else:
                self.kernel.set(one.ref, one.new)
        self.journal.rejected(refused)
        return True

    def tear(self, size: int) -> None:
        """SIGKILL inside write(2): any prefix of the append may be there; no knob of it was written."""
        content = self.file.read_bytes()
        if content[:5] == b"dasec" and len(content) > size:
            self.file.write_bytes(content[: self.chance.randrange(size, len(content))])

    def third_party(self) -> None:
        """Somebody sets a knob of ours; the daemon sees it within a period and yields."""
        held = [one.ref for one in self.journal.outstanding()]
        if held and self.chance.random() < 0.2:
            ref = self.chance.choice(held)
            value: NativeValue = (0, 3) if ref.kind is AFFINITY else 77_777
            self.kernel.set(ref, value)
            self.foreign[ref] = value
            if self.chance.random() < 0.5:
                self.journal.settle([ref])


@pytest.mark.parametrize("seed", range(6))
def test_every_knob_comes_back_and_what_others_set_stays(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(LIVES):
        kernel = machine()
        before = machine()
        life = Life(tmp_path, kernel, chance)
        life.live()
        survivor, _ = Journal.open(tmp_path, wait_s=0.0)
        restored = put_all_back(survivor, kernel)
        survivor.close()
        for ref, value in life.foreign.items():
            before.set(ref, value)
        assert kernel.snapshot() == before.snapshot(), f"seed {seed}, life {number}"
        assert restored.failed == ()


@pytest.mark.parametrize("seed", range(3))
def test_own_groups_and_those_born_in_them_come_back(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(LIVES):
        kernel = machine()
        before = dict(kernel.weights)
        home = {vcpu: one.group for vcpu, one in kernel.threads.items()}
        with_groups(tmp_path, kernel, chance)
        survivor, _ = Journal.open(tmp_path, wait_s=0.0)
        restored = put_all_back(survivor, kernel)
        assert (survivor.outstanding(), survivor.groups()) == ((), ())
        survivor.close()
        case = f"seed {seed}, life {number}"
        assert kernel.weights == before, case
        assert restored.failed == restored.left_alone == (), case
        for vcpu, one in kernel.threads.items():
            parent = vcpu._replace(tid=vcpu.tid % 1000, start_ticks=50)
            assert one == Thread(group=home[parent]), f"{case}: {vcpu}"


def with_groups(directory: Path, kernel: SmallKernel, chance: random.Random) -> None:
    """Move threads into groups of their own, while threads come and go, and die somewhere."""
    journal, _ = Journal.open(directory, wait_s=0.0)
    try:
        for vcpu in list(kernel.threads):
            tid, home = vcpu.tid, kernel.threads[vcpu].group.rstrip("/")
            own = f"{home}/dasec-{tid}"
            journal.group_made(MOUNT + own)
            die_maybe(chance)
            kernel.make_group(own)
            die_maybe(chance)
            for ref, new in (
                (group_of(tid), own),
                (weight_of(tid, own), 2000),
                (slice_of(tid), 4_000_000),
                (mask_of(tid), (1,)),
            ):
                journal.begin([Write(ref, kernel.read(ref), new)])
                die_maybe(chance)
                kernel.set(ref, new)
            young = vcpu._replace(tid=tid + 1000, start_ticks=10**12)
            kernel.clone(vcpu, young)
            if chance.random() < 0.2 and tid != 100:
                kernel.end(vcpu)
    except Died:
        pass
    finally:
        journal.close()


class Died(Exception):
    pass


def die_maybe(chance: random.Random) -> None:
    if chance.random() < 0.02:
        raise Died
