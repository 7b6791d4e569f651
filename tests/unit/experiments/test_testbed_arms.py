"""The arms of a testbed's experiment: what the daemon is told under each."""

from __future__ import annotations

import tomllib

import pytest

from dasec.config.config import check
from experiments.plan.arms import ALONE, RULES, capped, dasec_settings, following, known

ON_SCX = ("scx:none", "scx-partial:none", "rival:other")
RANGE = "floor_us = 100\nstart_us = 4000\nceiling_us = 12000\nrespect_burst = false\n"


@pytest.mark.parametrize("rla", ["", RANGE])
@pytest.mark.parametrize("arm", ALONE)
def test_a_rule_alone_is_alone_and_the_daemon_takes_it(arm: str, rla: str) -> None:
    told = tomllib.loads(dasec_settings([arm], rla)[arm])
    workload = {"name": "any", "cgroup": "/any"}
    check({**told, "workload": [workload]}, "settings")
    on = {rule for rule in RULES if told.get(rule, {}).get("enabled", True)}
    assert on == {ALONE[arm]}


def test_the_policy_itself_is_told_no_more_than_the_range_of_its_kernel() -> None:
    assert dasec_settings(["dasec", "critical"], "") == {}
    assert tomllib.loads(dasec_settings(["dasec"], RANGE)["dasec"])["rla"]["start_us"] == 4000


def test_policies_rules_and_constants_are_known_and_nothing_else() -> None:
    for arm in (
        "critical",
        "dasec:rcr",
        "watched",
        "critical:weight_ratio=3",
        "scx:none",
        "rival:other",
        "critical+caps",
        "critical+caps+burst",
    ):
        assert known(arm) == arm
    with pytest.raises(ValueError, match="dasec:tsa"):
        known("dasec:best")
    for arm in ("rival:", "rival: ", "rival:../other"):
        with pytest.raises(ValueError, match="names no program"):
            known(arm)


def test_an_arm_with_caps_is_its_policy_and_caps() -> None:
    told = capped(["critical", "critical+caps", "oracle+caps"], {"oracle": 'policy = "oracle"'})
    assert {arm: tomllib.loads(text)["policy"] for arm, text in told.items()} == {
        "critical+caps": "critical",
        "oracle+caps": "oracle",
    }
    assert all(tomllib.loads(text)["bandwidth"] == {"caps": True} for text in told.values())
    assert capped(["scx:critical+caps"], {}) == capped(["critical+caps"], {})
    (burst,) = capped(["critical+caps+burst"], {}).values()
    assert tomllib.loads(burst)["bandwidth"] == {"caps": True, "burst": True}


def test_an_arm_in_which_qemus_own_threads_follow_is_its_policy_and_that() -> None:
    told = following(["critical", "critical+follow", "oracle+follow"], {"oracle": 'policy = "oracle"\n'})
    workload = {"name": "any", "libvirt": "any"}
    for arm, policy in (("critical+follow", "critical"), ("oracle+follow", "oracle")):
        settings = check({**tomllib.loads(told[arm]), "workload": [workload]}, "settings")
        assert (settings.policy, settings.libvirt.emulator) == (policy, "follow")
    assert len(told) == 2
