"""What `dasec scx` shows of the VMs."""

from __future__ import annotations

from dasec.bpf.scx import VmTime
from dasec.commands.scx import fitting, shares

S = 1_000_000_000
NAMES = {7: "machine.slice/web.scope", 8: "machine.slice/batch.scope"}


def test_who_used_most_comes_first_with_its_share_and_its_critical_part() -> None:
    head, first, second, rest = shares(
        [], [VmTime(0, 100, S, S), VmTime(7, 300, 3 * S, S), VmTime(8, 100, 4 * S, 0)], NAMES
    )
    assert head.split() == ["CPU,", "s", "of", "all", "critical", "weight", "cgroup"]
    assert first.split() == ["4.0", "50%", "0%", "100", "machine.slice/batch.scope"]
    assert second.split() == ["3.0", "38%", "33%", "300", "machine.slice/web.scope"]
    assert rest.split() == ["1.0", "12%", "100%", "100", "all", "others"]


def test_between_two_looks_only_what_was_used_meanwhile_counts() -> None:
    before = [VmTime(7, 300, 3 * S, S), VmTime(8, 100, 4 * S, 0)]
    _, first, second = shares(before, [VmTime(7, 300, 5 * S, 2 * S), VmTime(8, 100, 4 * S, 0)], NAMES)
    assert first.split() == ["2.0", "100%", "50%", "300", "machine.slice/web.scope"]
    assert second.split() == ["0.0", "0%", "0%", "100", "machine.slice/batch.scope"]


def test_a_vm_whose_group_was_made_anew_counts_from_its_beginning() -> None:
    _, only = shares([VmTime(9, 100, 3 * S, 0)], [VmTime(9, 100, S, 0)], NAMES)
    assert only.split() == ["1.0", "100%", "0%", "100", "gone"]


def test_what_a_terminal_has_no_room_for_is_counted() -> None:
    lines = ["head", "most", "less", "least"]
    assert fitting(lines, 4) == lines
    assert fitting(lines, 3) == ["head", "most", "… 2 more"]
