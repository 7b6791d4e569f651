"""What each rule means, in words for an operator; the numbers that it saw stand beside them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

RULES: Mapping[str, str] = MappingProxyType(
    {
        "tsa.raise": "it used up its slice and still wanted to run, so its part of the workload grows",
        "tsa.scale": "siblings got more, and the workload's sum stays as it was",
        "rla.start": "every vCPU starts with this rescheduling latency",
        "rla.cut": "it did not use up its slice and wanted to run, so it may start sooner",
        "rla.raise": "it used up its slice and sleeps, so it may start later",
        "rla.source": "it woke a vCPU that still waits and cannot start any sooner",
        "rcr.slices": "two vCPUs changed places to even out the slices of their cores",
        "rcr.latencies": "two vCPUs changed places to part those that want to start soon",
        "critical.path": "siblings wait for what it does",
        "critical.yield": "hardly anybody waits for it, so it yields to those that siblings wait for",
        "critical.later": "hardly anybody waits for it, so it may start later than those that are waited for",
        "critical.neutral": "it is not judged at present, so it is as if nobody were preferred",
        "guard.without": "the guard looks how the workload does without the policy",
        "guard.with": "the guard looks how the workload does with the policy: as the policy had it",
        "guard.neutral": "the guard has found harm, so the policy is off here",
        "static.pin": "pinned once, evenly",
        "bvt.warp": "its workload is declared latency-critical, so it may start sooner",
        "bvt.unwarp": "it ran for too long to start sooner; for a while it is as it was found",
        "parties.hold": "its workload holds these cores",
        "oracle.raise": "the configuration says that it is critical",
        "oracle.yield": "the configuration does not say that it is critical",
    }
)


def meaning(rule: str) -> str:
    """The rule in words; its name alone where a record knows rules that we do not."""
    return f"{RULES[rule]} ({rule})" if rule in RULES else rule


def numbers(inputs: object) -> str:
    """The numbers that a rule saw: `consumed 80 ms, cores 2`."""
    assert isinstance(inputs, list | tuple)
    return ", ".join(_number(name, value) for name, value in inputs)


def _number(name: str, value: int) -> str:
    words = name.replace("_", " ")
    return (
        f"{words.removesuffix(' ns')} {milliseconds(value)}" if words.endswith(" ns") else f"{words} {value}"
    )


def milliseconds(value_ns: int) -> str:
    """`4 ms`, `0.35 ms`."""
    return f"{value_ns / 1e6:.3g} ms" if value_ns < 10**9 else f"{value_ns / 1e6:.0f} ms"
