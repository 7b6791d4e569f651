"""The page of the record has every key that a line can have."""

from __future__ import annotations

from pathlib import Path

from dasec.model import Core, CpuWish, Decision, PolicyState, Topology, Vcpu, VcpuId, Workload, WorkloadKnobs
from dasec.record.entries import (
    PeriodLine,
    Stages,
    VcpuOrder,
    decision_row,
    topology_row,
    workload_row,
)

PAGE = (Path(__file__).resolve().parents[2] / "docs/record.md").read_text(encoding="utf-8")

CORE = Core(0)
TOPOLOGY = Topology((CORE,), {CORE: 0}, {CORE: 1024}, {CORE: 0})
WORKLOAD = Workload(
    "a",
    1024,
    (Vcpu(VcpuId(1, 1, 1), "t", frozenset({CORE}), emulator=True),),
    quota_cores=None,
    wish=CpuWish("whole", 1000),
)
DECISION = Decision(state=PolicyState(), workloads={"a": WorkloadKnobs(caps={VcpuId(1, 1, 1): 1})})


def test_every_key_of_a_line_is_on_the_page() -> None:
    keys = [
        *PeriodLine.__annotations__,
        *topology_row(TOPOLOGY),
        *workload_row(WORKLOAD),
        *decision_row(DECISION, VcpuOrder.of((WORKLOAD,)), None),
        *Stages._fields,
    ]
    assert [key for key in keys if f"`{key}`" not in PAGE] == []
