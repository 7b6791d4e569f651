"""The whole cores of a node as a resource that kube-scheduler counts: an extended resource of Kubernetes.

A pod that wants CPUs of its own asks for so many beside its annotation. The scheduler then subtracts what
pods have, so a node is told only how many there are, never how many are free.
"""

from __future__ import annotations

from collections.abc import Mapping

from .fleet import without_port

RESOURCE = "dasec.io/core"


def offered(cores: Mapping[str, int], kept: int) -> dict[str, int]:
    """By node, how many of these cores (by `instance`) reservations may have; `kept` stay in the pool. Two
    instances of one node: the greater."""
    nodes: dict[str, int] = {}
    for instance, there in cores.items():
        node = without_port(instance)
        nodes[node] = max(0, there - kept, nodes.get(node, 0))
    return nodes


def untold(now: Mapping[str, int], told: Mapping[str, int]) -> dict[str, int]:
    """What nodes must be told that know something else. Where no daemon reports any more nobody would keep a
    reservation: such a node offers none; pods that run there keep what they have."""
    wanted = {**dict.fromkeys(told, 0), **now}
    return {node: cores for node, cores in wanted.items() if told.get(node) != cores}
