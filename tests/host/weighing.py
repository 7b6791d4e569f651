"""A weight for one vCPU, written by the host under test."""

from __future__ import annotations

from dasec.hosts.threads.host import ThreadsHost
from dasec.model import Change, Knob, Outcome, VcpuId


def weigh(host: ThreadsHost, vcpu: VcpuId, weight: int = 1126) -> Outcome:
    (result,) = host.apply([Change(vcpu, Knob.WEIGHT, 1024, weight, "test")])
    return result.outcome
