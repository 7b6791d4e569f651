"""What the host remembers of one managed thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...knobs.knob import KnobRef, NativeKnob, NativeValue
from ...knobs.masks import AFFINITY
from ...knobs.policies import POLICY
from ...knobs.quotas import QUOTA
from ...knobs.slices import SLICE
from ...linux import schedattr
from ...linux.dasecfile import DEFAULT
from ...linux.procfs import KeptThread
from ...model import Core, Knob, Knobs, KnobValue, Vcpu, VcpuId
from ...roster import Terms
from ...safety.journal.ledger import Outstanding

STOCK: Mapping[Knob, NativeKnob] = {
    Knob.RESCHEDULING_LATENCY: SLICE,
    Knob.AFFINITY: AFFINITY,
    Knob.CAP: QUOTA,
}
"""The kernel's knob for each of the model's, where nobody brings others. For weights a place is found."""


class HeldKnob(NamedTuple):
    """A knob that we wrote: what it held before us, what we wrote last and before that, in the
    kernel's units, the last value in the model's, and what a cheap look must find (NativeKnob.shown)."""

    ref: KnobRef
    prior: NativeValue
    now: NativeValue
    before: NativeValue
    value: KnobValue
    shown: object = None

    def outstanding(self) -> Outstanding:
        """As whoever puts it back has to know it."""
        return Outstanding(self.ref, self.prior, (self.now, self.before))


@dataclass(slots=True)
class WeightPlace:
    """Where a thread's weight is set: the group that it is alone in, or will be.

    `origin` is the group it came from where the group is our own, else None; `made` says
    whether our own group exists yet (it is made on the first write).
    """

    kind: NativeKnob
    group: str
    file: str
    origin: str | None = None
    made: bool = True
    descriptor: int | None = None


@dataclass(slots=True)
class ManagedThread:
    """One adopted thread: identity, kept descriptors, knobs, and what we hold.

    `crowded`: it shares its group, so it may have another place for its weight when the company changes.
    `written`: since the last look we wrote a knob that BPF sees in the thread, so that a difference is
    likely our own (batch.py).
    `terms`: what whoever made it asks of us.
    `takes_caps`: nobody else has written the quota of its group, and it is alone there.
    `given_quota`: quota and period that its group has without us; empty: none.
    `kinds`: the kernel's knob for each of the model's; a place for its weight goes before.
    `glanced`: of the knobs held that a system call can tell of, what it must say.
    `defaults`: the knobs that something else than a stock kernel gives it, and what they come to while nobody
    has set them.
    """

    vcpu: Vcpu
    kept: KeptThread
    nice: int
    first_core: Core
    knobs: Knobs
    group: str = ""
    weight: WeightPlace | None = None
    crowded: bool = False
    written: bool = False
    kinds: Mapping[Knob, NativeKnob] = field(default_factory=lambda: STOCK)
    defaults: Mapping[NativeKnob, int] = field(default_factory=dict)
    terms: Terms | None = None
    workload: str = ""
    takes_caps: bool = True
    given_quota: str = ""
    held: dict[NativeKnob, HeldKnob] = field(default_factory=dict)
    glanced: dict[NativeKnob, object] = field(default_factory=dict)
    _board: dict[VcpuId, Knobs] = field(default_factory=dict)
    _anew: dict[tuple[VcpuId, Knob], None] = field(default_factory=dict)

    @property
    def id(self) -> VcpuId:
        """Who it is."""
        return self.vcpu.id

    def kind_of(self, knob: Knob) -> NativeKnob:
        """The kernel's knob for one of the model's. A weight goes to the group of a thread that is alone
        there: inside of it a thread's own weight competes with nobody."""
        if knob is Knob.WEIGHT and self.weight is not None:
            return self.weight.kind
        return self.kinds[knob]

    def weight_kind(self) -> NativeKnob | None:
        """The kernel's knob for its weight, if it has one."""
        return self.weight.kind if self.weight is not None else self.kinds.get(Knob.WEIGHT)

    def take_up(self, defaults: Mapping[NativeKnob, int]) -> None:
        """It has these knobs, too, each of which serves one of the model's from now on."""
        self.defaults = defaults
        self.kinds = {**self.kinds, **{kind.serves: kind for kind in defaults if kind.serves is not None}}

    def model_of(self, kind: NativeKnob, value: NativeValue) -> KnobValue:
        """What a kernel's value is in the model."""
        return self.defaults[kind] if value == DEFAULT else kind.model(value)

    def may_be(self, policy: int) -> bool:
        """Is it a policy that we have given it?"""
        held = self.held.get(POLICY)
        return held is not None and held.now == policy

    def hold(self, held: HeldKnob) -> None:
        """We wrote a knob; from now on read it back."""
        kind = held.ref.kind
        self.held[kind] = held
        if kind.glances:
            self.glanced[kind] = held.shown
        self.written = self.written or kind.in_task
        self.show(kind, held.value)

    def drop(self, kind: NativeKnob) -> None:
        """The knob is not ours any more."""
        self.held.pop(kind, None)
        self.glanced.pop(kind, None)

    def expect_mask(self, present: tuple[int, ...], own: tuple[int, ...]) -> None:
        """Our mask reads as `present` from now on, as its cpuset lets it; without us it would be `own`."""
        self.glanced[AFFINITY] = AFFINITY.shown(present)
        self.vcpu = self.vcpu._replace(allowed=self.within(map(Core, own)))
        self.show(AFFINITY, frozenset(map(Core, present)))

    def agree(self, terms: Terms, mask: frozenset[Core] | None) -> None:
        """These are its terms from now on, and `mask` is its mask (None: ours, and within the terms)."""
        self.terms = terms
        if terms.emulator:
            self.vcpu = self.vcpu._replace(emulator=True)
            self.takes_caps = False
            self._post(Knobs(self.knobs.weight, None, None))
        if self.weight is not None and self.weight.origin is not None:
            self.show(self.weight.kind, None)
            self.weight = None
        if mask is None:
            self.vcpu = self.vcpu._replace(allowed=self.within(self.vcpu.allowed))
            return
        self.allow(self.within(mask))
        if not self.vcpu.allowed:
            self.show(AFFINITY, None)

    def within(self, cores: Iterable[Core]) -> frozenset[Core]:
        """Those of the cores that the thread's terms let it use."""
        limit = self.terms.cores if self.terms is not None else None
        return frozenset(cores) if limit is None else limit.intersection(cores)

    def keeps(self, cores: frozenset[Core]) -> bool:
        """Is a mask of ours on it that stays within these cores?"""
        held = self.held.get(AFFINITY)
        return held is not None and isinstance(held.value, frozenset) and held.value <= cores

    def post_on(self, board: dict[VcpuId, Knobs], anew: dict[tuple[VcpuId, Knob], None]) -> None:
        """Keep this thread's entry of `board` up to date from now on, and enter in `anew` what is not to be
        taken for what it was."""
        self._board, self._anew = board, anew
        board[self.id] = self.knobs

    def take_anew(self, knob: Knob) -> None:
        """Somebody has set a knob that we do not hold since the model saw it. In the next look it has none,
        so that policies forget what it was, and in the one after that the present one (settling.py)."""
        self.show(self.kind_of(knob), None)
        self._anew[self.id, knob] = None

    def show(self, kind: NativeKnob, value: KnobValue | None) -> None:
        """What the model shall see in this knob; None: it is not ours to write."""
        knobs = self.knobs
        if kind is QUOTA and value is None:
            self.takes_caps = False
        match kind.serves, value:
            case Knob.WEIGHT, int() | None:
                self._post(Knobs(value, knobs.rescheduling_latency_ns, knobs.affinity))
            case Knob.RESCHEDULING_LATENCY, int() | None:
                self._post(Knobs(knobs.weight, value, knobs.affinity))
            case Knob.AFFINITY, frozenset() | None:
                self._post(Knobs(knobs.weight, knobs.rescheduling_latency_ns, value))

    def leave_weight(self) -> None:
        """It is somebody else's, whatever the thread's company is."""
        self.crowded = False
        self._post(self.knobs._replace(weight=None))

    def allow(self, cores: frozenset[Core]) -> None:
        """Somebody changed a mask that we do not hold: these are the allowed cores now."""
        self.vcpu = self.vcpu._replace(allowed=cores)
        if self.knobs.affinity is not None:
            self._post(self.knobs._replace(affinity=cores))

    def _post(self, knobs: Knobs) -> None:
        self.knobs = knobs
        if self.id in self._board:
            self._board[self.id] = knobs

    def outstanding(self) -> tuple[Outstanding, ...]:
        """What we hold of it."""
        return tuple(held.outstanding() for held in self.held.values())


def why_not(policy: int, *, kernel_thread: bool) -> str | None:
    """Why a thread must not be touched, or None."""
    if kernel_thread:
        return "a kernel thread"
    if policy in schedattr.FAIR_POLICIES:
        return None
    return _POLICY_REASONS.get(policy, f"scheduling policy {policy}")


_POLICY_REASONS: Mapping[int, str] = {
    schedattr.SCHED_FIFO: "real-time (SCHED_FIFO)",
    schedattr.SCHED_RR: "real-time (SCHED_RR)",
    schedattr.SCHED_DEADLINE: "deadline scheduling",
    schedattr.SCHED_IDLE: "idle class (SCHED_IDLE)",
    schedattr.SCHED_EXT: "scheduled by a BPF scheduler",
}
