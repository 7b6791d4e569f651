"""What an operator is warned of."""

from __future__ import annotations

import pytest

from dasec.hosts.probe import surroundings
from dasec.hosts.probe.nesting import nesting_of
from dasec.hosts.probe.reweight import Duel, Side

from .tree import Tree


def warned(tree: Tree) -> str:
    return "\n".join(surroundings.warnings(tree.proc, tree.sysfs))


def test_a_quiet_host_gives_no_warning(tree: Tree) -> None:
    tree.write("proc/sys/kernel/sched_autogroup_enabled", "0\n")
    tree.write("proc/sys/kernel/sched_rt_runtime_us", "950000\n")
    tree.write("proc/10/comm", "bash\n")
    assert warned(tree) == ""


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ('{"policyName":"static","defaultCpuSet":"0","checksum":1}', "its static CPU policy rewrites"),
        ('{"policyName":"none","defaultCpuSet":"","checksum":3242152201}', None),
        ("{", "its static CPU policy, if it has one, rewrites"),
        ("[]", "its static CPU policy, if it has one, rewrites"),
        (None, "its static CPU policy, if it has one, rewrites"),
    ],
)
def test_kubelet_is_a_rival_where_its_policy_is_static_or_cannot_be_read(
    tree: Tree, state: str | None, said: str | None
) -> None:
    tree.write("proc/10/comm", "kubelet\n")
    if state is not None:
        tree.write(f"proc/10/root/{surroundings.KUBELET_STATE}", state)
    assert warned(tree) == "" if said is None else f"kubelet is running: {said}" in warned(tree)


@pytest.mark.parametrize("name", sorted(surroundings.RIVALS))
def test_a_running_rival_is_named(tree: Tree, name: str) -> None:
    tree.write("proc/10/comm", f"{name}\n")
    assert f"{name} is running" in warned(tree)


def test_settings_that_void_our_knobs_are_named(tree: Tree) -> None:
    tree.write("proc/10/comm", "bash\n")
    tree.write("proc/sys/kernel/sched_autogroup_enabled", "1\n")
    tree.write("proc/sys/kernel/sched_rt_runtime_us", "-1\n")
    tree.write("sys/kernel/sched_ext/state", "enabled\n")
    tree.write("sys/kernel/sched_ext/root/ops", "bpfland\n")
    tree.write("sys/devices/system/cpu/isolated", "2-3\n")
    said = warned(tree)
    for word in ("autogroup", "real-time throttling", "(bpfland)", "CPUs 2,3 are isolated"):
        assert word in said


@pytest.mark.parametrize(
    ("release", "suspect"),
    [
        ("6.1.0-41-amd64", False),
        ("6.12.117", False),
        ("6.13.0", True),
        ("6.18.44-fc", True),
        ("6.18.45", False),
        ("7.0", False),
        ("unknown", False),
    ],
)
def test_the_version_suggests_the_reweight_bug(release: str, suspect: bool) -> None:
    assert surroundings.reweight_suspect(release) is suspect


STARVED, SERVED, HARDLY = Duel(120_000_000, 110_000_000), Duel(310_000_000, 9_000_000), Duel(40_000_000)


@pytest.mark.parametrize(
    ("tried", "release", "works", "word"),
    [
        (STARVED, "6.12.117", False, "110 ms of a CPU while the other waited"),
        (STARVED, "6.18.44", False, "110 ms of a CPU while the other waited"),
        (SERVED, "6.18.44", True, "it does not here"),
        (SERVED, "6.18.45", True, None),
        (HARDLY, "6.18.44", False, "too busy to try"),
        (HARDLY, "6.18.45", True, None),
        ("it takes two CPUs to try", "6.18.44", False, "it takes two CPUs to try"),
        ("it takes two CPUs to try", "6.18.45", True, None),
    ],
)
def test_what_was_tried_says_whether_nested_weights_harm_and_the_version_only_in_doubt(
    tried: Duel | str, release: str, works: bool, word: str | None
) -> None:
    found = nesting_of(tried, release)
    assert found.works is works
    assert "".join(found.warnings) == "" if word is None else word in found.warnings[0]


def test_a_group_starves_by_what_its_rival_gets_and_not_by_time() -> None:
    """Looks: (it got, its rival got). Other work on the host takes time from both."""
    side = Side(0, 0)
    starved = []
    for got, rival in [(0, 0), (0, 0), (0, 4), (0, 90), (3, 90), (3, 95)]:
        side = side.after(got, rival)
        starved.append(rival - side.rival_then_ns)
    assert starved == [0, 0, 4, 90, 0, 5]
