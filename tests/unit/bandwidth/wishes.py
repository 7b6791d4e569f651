"""Caps in a decision, of the one workload that these tests have."""

from __future__ import annotations

from collections.abc import Mapping

from dasec.model import Decision, VcpuId, WorkloadKnobs


def capped(caps: Mapping[VcpuId, int]) -> dict[str, WorkloadKnobs]:
    return {"vm": WorkloadKnobs(caps)}


def caps_of(decision: Decision) -> Mapping[VcpuId, int]:
    """Those that are wanted, if any."""
    return decision.workloads["vm"].caps if decision.workloads else {}
