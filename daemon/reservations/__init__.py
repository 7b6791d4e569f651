"""Reservations of CPUs, pure: two papers as one allocator (docs/reservations.md).

The CPUs of a host lie in three groups. *Exclusive* ones (P1) have one holder each. *Fractional* ones (P2)
are held in parts, by several. The *pool* (P3) belongs to all who share. WYSIWYG (Bacou et al., SCC 2019,
algorithm 1) gives a workload as many CPUs as it may use, so that it sees what it gets. rKube (Liu et al.,
SoCC 2021, section 5.2) gives whole CPUs, the amount rounded up.
"""

from .allocate import Refused, allocate, release
from .grants import Ask, CpuClass, Grant, Principle, Reservations
from .order import CpusetWrite, writes

__all__ = [
    "Ask",
    "CpuClass",
    "CpusetWrite",
    "Grant",
    "Principle",
    "Refused",
    "Reservations",
    "allocate",
    "release",
    "writes",
]
