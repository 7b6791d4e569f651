"""What an operator is warned of."""

from __future__ import annotations

import pytest

from dasec.hosts import surroundings
from dasec.hosts.reweight import Storm

from .tree import Tree


def warned(tree: Tree) -> str:
    return "\n".join(surroundings.warnings(tree.proc, tree.sysfs))


def test_a_quiet_host_gives_no_warning(tree: Tree) -> None:
    tree.write("proc/sys/kernel/sched_autogroup_enabled", "0\n")
    tree.write("proc/sys/kernel/sched_rt_runtime_us", "950000\n")
    tree.write("proc/10/comm", "bash\n")
    assert warned(tree) == ""


@pytest.mark.parametrize("name", sorted(surroundings.RIVALS))
def test_a_running_rival_is_named(tree: Tree, name: str) -> None:
    tree.write("proc/10/comm", f"{name}\n")
    assert f"{name} is running" in warned(tree)


def test_settings_that_void_our_knobs_are_named(tree: Tree) -> None:
    tree.write("proc/10/comm", "bash\n")
    tree.write("proc/sys/kernel/sched_autogroup_enabled", "1\n")
    tree.write("proc/sys/kernel/sched_rt_runtime_us", "-1\n")
    tree.write("sys/kernel/sched_ext/state", "enabled\n")
    tree.write("sys/devices/system/cpu/isolated", "2-3\n")
    said = warned(tree)
    for word in ("autogroup", "real-time throttling", "sched_ext", "CPUs 2,3 are isolated"):
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


@pytest.mark.parametrize(
    ("storm", "word"),
    [
        (Storm(150, 150, 12_000_000), None),
        (Storm(150, 150, 227_000_000), "227 ms"),
        (Storm(100, 270, 12_000_000), "2.7 times"),
        (Storm(0, 270, 12_000_000), "times"),
    ],
)
def test_a_storm_is_judged_by_starvation_and_by_shares(storm: Storm, word: str | None) -> None:
    assert (word is None and storm.wrong is None) or (word is not None and word in (storm.wrong or ""))
