"""Where workloads of a fleet should be, pure: one move at a time, and only one that a simulation likes
(docs/fleet.md, decision 0053).

A move is simulated on both hosts: whether the target can hold the workload, by the allocation that WYSIWYG
(Bacou et al., SCC 2019, section IV-D) simulates on each node, and what both hosts and the workload would
wait, by the load that the workload takes along.
"""

from .allocate import Fit, fit
from .fleet import FleetHost, Lately, Resident
from .hint import AdvisedMove, hint
from .waits import wait_with

__all__ = ["AdvisedMove", "Fit", "FleetHost", "Lately", "Resident", "fit", "hint", "wait_with"]
