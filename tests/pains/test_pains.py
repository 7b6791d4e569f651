"""Pains that operators of such daemons report, and that no other test is about; docs/faq.md names all."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings

from dasec.critical import Critical
from dasec.knobs import knob
from dasec.knobs.knob import KnobRef
from dasec.knobs.masks import AFFINITY
from dasec.linux import affinity, cgroupfs
from dasec.model import Period, VcpuId
from dasec.policies import POLICIES, Parameters, policy_named
from tests.architecture.source import Source, all_sources, imports
from tests.properties.strategies import periods

BY_UNIT = re.compile(r"systemctl|set-property|org\.freedesktop\.systemd1")


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=20)
@given(made=periods())
def test_no_policy_puts_a_vcpu_where_it_may_not_run_or_nowhere(name: str, made: Period) -> None:
    """All on CPU 0, or on none, because a list came empty or was cut."""
    policy = policy_named(name, Parameters())
    wanted = policy.decide(made, policy.initial_state()).knobs
    for workload in made.workloads:
        for vcpu in workload.vcpus:
            mask = wanted[vcpu.id].affinity if vcpu.id in wanted else None
            assert mask is None or (mask and mask <= vcpu.allowed)


@settings(max_examples=20)
@given(made=periods())
def test_the_default_policy_pins_nobody(made: Period) -> None:
    decision = Critical().decide(made, Critical().initial_state())
    assert all(knobs.affinity is None for knobs in decision.knobs.values())


def test_a_full_mask_goes_back_to_one_that_follows_its_cpuset_and_a_smaller_one_to_itself() -> None:
    """A full mask is not none: put back number by number, a thread would never see a CPU that comes later."""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        ref = KnobRef(VcpuId(sleeper.pid, sleeper.pid, 0), AFFINITY)
        full = affinity.get(sleeper.pid)
        assert knob.prior_of(ref, full) == AFFINITY.unset
        affinity.put(sleeper.pid, full[:1])
        if len(full) > 1:
            assert knob.prior_of(ref, full[:1]) == full[:1]
        affinity.put(sleeper.pid, ())
        assert affinity.get(sleeper.pid) == full
        sleeper.kill()


@pytest.mark.parametrize("on", [True, False])
def test_no_controller_but_cpu_is_ever_switched(on: bool, tmp_path: Path) -> None:
    """To switch cpuset on resets the masks of everybody below (systemd #23748)."""
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("")
    cgroupfs.hand_on_cpu(str(control), on=on)
    assert control.read_text() == ("+cpu" if on else "-cpu")
    writers = {source.path for source in sources() if "hand_on_cpu" in _text(source.path)}
    assert writers <= {"linux/cgroupfs.py", "knobs/groups.py", "hosts/threads/own_groups.py"}
    assert [path for path in _paths() if re.search(r"[\"'][+-]cpuset", _text(path))] == []


def test_nothing_is_set_or_undone_by_way_of_the_service_manager() -> None:
    """An AllowedCPUs= that is reset does not undo (systemd #43846): masks are set thread by thread."""
    assert [path for path in _paths() if BY_UNIT.search(_text(path))] == []


def test_the_daemon_never_calls_libvirt() -> None:
    """Who calls it from a hook hangs with it; who holds a connection is deaf after it restarts."""
    found = {source.path for source in sources() for _, name in imports(source) if name == "libvirt"}
    assert found == {"commands/vm.py"}, "the command `dasec vm` only"


@cache
def sources() -> list[Source]:
    """Parsed once."""
    return list(all_sources())


def _paths() -> list[str]:
    return [source.path for source in sources()]


def _text(path: str) -> str:
    return (Path(cgroupfs.__file__).parents[1] / path).read_text(encoding="utf-8")
