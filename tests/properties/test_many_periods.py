"""A small world that lives through many periods: threads come and go, run and sleep, and others meddle.

Every period goes through between → decide → plan → apply, and every invariant is checked after each step.
"""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dasec import paper
from dasec.model import Core, Counters, Knobs, PolicyState, Snapshot, ThreadState, Vcpu, VcpuId, Workload
from dasec.paper import DasecState
from dasec.period import between, seat
from dasec.plan import plan
from dasec.policies import Parameters
from dasec.rcr import RcrParameters

from ..builders import core_set, topology
from .invariants import check_all

LENGTH_NS = 80_000_000
CORES = 4
PARAMETERS = Parameters((RcrParameters(min_conflicts=2, cooldown_periods=3),))


class World(RuleBasedStateMachine):
    """Two workloads on four cores in two NUMA nodes, under the policy `dasec`."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = paper.KIND.build(PARAMETERS)
        self.state: PolicyState = self.policy.initial_state()
        self.topology = topology(CORES, (0, 0, 1, 1))
        self.threads: dict[str, list[Vcpu]] = {"a": [], "b": []}
        self.counters: dict[VcpuId, Counters] = {}
        self.knobs: dict[VcpuId, Knobs] = {}
        self.clock_ns = 0
        self.born = 0
        self.index = 0
        self.before = self.snapshot()
        self.moved_in: dict[VcpuId, int] = {}
        self.came_with: dict[VcpuId, int] = {}

    def snapshot(self) -> Snapshot:
        workloads = tuple(Workload(name, 1024, tuple(vcpus)) for name, vcpus in self.threads.items() if vcpus)
        return Snapshot(self.clock_ns, self.topology, workloads, dict(self.counters), dict(self.knobs))

    def pick(self, choice: random.Random) -> VcpuId:
        return choice.choice(sorted(self.knobs))

    @initialize(choice=st.randoms(use_true_random=False))
    def begin(self, choice: random.Random) -> None:
        for name in ("a", "a", "a", "b", "b", "b", "b"):
            self.thread_comes(name, choice)
        self.before = self.snapshot()

    @rule(name=st.sampled_from(["a", "b"]), choice=st.randoms(use_true_random=False))
    def thread_comes(self, name: str, choice: random.Random) -> None:
        self.born += 1
        allowed = core_set(*choice.choice([range(CORES), range(CORES), (0, 1), (2, 3), (1,)]))
        vcpu = Vcpu(VcpuId(1, 1 + self.born % 9, self.born), f"t{self.born}", allowed)
        self.threads[name].append(vcpu)
        self.counters[vcpu.id] = Counters(0, 0, 0, ThreadState.IDLE, choice.choice(sorted(allowed)))
        self.knobs[vcpu.id] = Knobs(
            choice.choice([1024, 1024, 300, None]), choice.choice([1_400_000, None]), allowed
        )
        self.came_with[vcpu.id] = self.knobs[vcpu.id].weight or 0

    @precondition(lambda self: len(self.knobs) > 2)
    @rule(choice=st.randoms(use_true_random=False))
    def thread_goes(self, choice: random.Random) -> None:
        gone = self.pick(choice)
        for vcpus in self.threads.values():
            vcpus[:] = [vcpu for vcpu in vcpus if vcpu.id != gone]
        del self.counters[gone], self.knobs[gone]

    @precondition(lambda self: self.knobs)
    @rule(choice=st.randoms(use_true_random=False))
    def somebody_else_takes_a_knob(self, choice: random.Random) -> None:
        vcpu = self.pick(choice)
        field = choice.choice(Knobs._fields)
        self.knobs[vcpu] = self.knobs[vcpu]._replace(**{field: None})

    @precondition(lambda self: self.knobs)
    @rule(choice=st.randoms(use_true_random=False))
    def counters_are_reset(self, choice: random.Random) -> None:
        vcpu = self.pick(choice)
        self.counters[vcpu] = self.counters[vcpu]._replace(on_cpu_ns=0, ready_ns=0, dispatches=0)

    @rule(choice=st.randoms(use_true_random=False), busy=st.floats(0, 1))
    def a_period_passes(self, choice: random.Random, busy: float) -> None:
        self.clock_ns += LENGTH_NS
        for vcpus in self.threads.values():
            for vcpu in vcpus:
                if choice.random() < busy:
                    self.counters[vcpu.id] = self.lives(vcpu, choice)
        after = self.snapshot()
        self.index += 1
        period = between(self.index, self.before, after)
        decision = self.policy.decide(period, self.state)
        planned = plan(period, decision)
        assert planned.violations == ()
        later = check_all(period, decision, planned, PARAMETERS, self.came_with)
        for vcpu_id in self.knobs:
            if seat(later, vcpu_id) != seat(period, vcpu_id):
                last = self.moved_in.get(vcpu_id, -99)
                assert self.index - last > PARAMETERS.of(RcrParameters).cooldown_periods
                self.moved_in[vcpu_id] = self.index
        self.knobs = dict(later.knobs)
        self.state = decision.state
        self.before = replace(after, knobs=later.knobs)

    def lives(self, vcpu: Vcpu, choice: random.Random) -> Counters:
        """It runs on its seat, for some of the period, and may have been woken by siblings."""
        then, affinity = self.counters[vcpu.id], self.knobs[vcpu.id].affinity
        core: Core = choice.choice(sorted(affinity or {then.core}))
        siblings = next(vcpus for vcpus in self.threads.values() if vcpu in vcpus)
        woken = dict(then.wakers or ())
        for sibling in choice.sample(siblings, min(2, len(siblings))):
            woken[sibling.id] = woken.get(sibling.id, 0) + choice.randrange(5)
        return Counters(
            then.on_cpu_ns + choice.choice([0, 5_000_000, 40_000_000, LENGTH_NS]),
            then.ready_ns + choice.choice([0, 1_000_000, 30_000_000]),
            then.dispatches + choice.randrange(30),
            choice.choice(list(ThreadState)),
            core,
            wakers=tuple(woken.items()),
        )

    @invariant()
    def memory_holds_only_who_is_there(self) -> None:
        assert isinstance(self.state, DasecState)
        known = self.before.knobs.keys()
        assert set(self.state.started) <= known
        assert {vcpu for vcpu, _ in self.state.moved} <= known
        assert {vcpu for vcpu, _ in self.state.neutral} <= known


World.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
test_many_periods = World.TestCase
