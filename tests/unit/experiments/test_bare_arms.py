"""What the daemon is told beside guests of our own, and what it would refuse when they are up."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dasec.config.config import check
from dasec.errors import ExitStatus, Refusal
from experiments.plan.file import told_in
from experiments.plan.oracle import ORACLE
from experiments.run.family import Ways
from experiments.studies.bare import guests as family
from experiments.studies.bare.wish import CRITICAL, refused, told

STUDY = Path(__file__).parents[3] / "experiments/studies/bare"
GUARDED = (f"{CRITICAL}+guard", f"{ORACLE}+guard", f"{CRITICAL}:weight_ratio=3+guard")
TAKEN = (
    *GUARDED,
    "none",
    "none-again",
    "watched",
    "dasec",
    CRITICAL,
    f'{CRITICAL}:fairness="giving"',
    ORACLE,
)


@pytest.mark.parametrize("guests", [{"bare-1": 11}, "dasec-1-*"])
@pytest.mark.parametrize("arm", GUARDED)
def test_an_arm_under_the_guard_is_its_policy_with_the_guard_on(
    arm: str, guests: dict[str, int] | str
) -> None:
    guarded, plain = (
        tomllib.loads(told(one, "kvm", guests, "never")) for one in (arm, arm.removesuffix("+guard"))
    )
    check(guarded, arm)
    assert guarded.pop("guard") == {"enabled": True}
    assert plain.pop("guard") == {"enabled": False}
    assert guarded == plain


def test_all_that_the_daemon_takes_is_taken() -> None:
    assert list(refused(TAKEN)) == []


@pytest.mark.parametrize(
    "arm", ["scx", "scx:critical", "no-limit", "critical+caps", "dasec:tsa", "rival:a", "critical:nope=1"]
)
def test_an_arm_that_the_daemon_would_refuse_with_guests_up_is_refused_before(arm: str) -> None:
    asked = {**told_in(STUDY / "quick.toml"), "policies": [arm]}
    with pytest.raises(Refusal) as caught:
        family.check(asked, STUDY / "quick.toml", Ways())
    (line,) = caught.value.lines
    assert f"quick.toml: policies: {arm}: " in line
    assert caught.value.status is ExitStatus.USAGE


@pytest.mark.parametrize("policies", [[], ["none"], ["none-again"]])
def test_nothing_beside_the_plain_host_is_refused_as_there_would_be_nothing_to_tell(
    policies: list[str],
) -> None:
    asked = {**told_in(STUDY / "quick.toml"), "policies": policies}
    with pytest.raises(Refusal, match="policies: names nothing beside the plain host"):
        family.check(asked, STUDY / "quick.toml", Ways())
