"""What a container may say of itself, and what is left of it."""

from __future__ import annotations

import pytest

from dasec.config.config import check
from dasec.model import CpuWish
from dasec.workloads.containers.consent import CLASSES, consent
from tests.builders import Group, Row, period

ENABLED = {"dasec.io/enable": "true"}
ANY = [{"name": "a", "pids": [1]}]


def said(cpu: str | None, cpus: str | None, *, may_reserve: bool = True) -> tuple[CpuWish | None, str]:
    """The wish, and what was complained of."""
    notes = {"dasec.io/cpu": cpu, "dasec.io/cpus": cpus}
    told = {key: value for key, value in notes.items() if value is not None}
    found = consent(ENABLED | told, 1024, may_reserve=may_reserve)
    assert found is not None
    return found.wish, " ".join(found.complaints)


@pytest.mark.parametrize("cpu_class", CLASSES)
@pytest.mark.parametrize(("cpus", "millicores"), [("2", 2000), ("0.5", 500), ("3.125", 3125)])
def test_a_class_and_an_amount_are_a_wish(cpu_class: str, cpus: str, millicores: int) -> None:
    assert said(cpu_class, cpus) == (CpuWish(cpu_class, millicores), "")


def test_who_says_nothing_of_cpus_wants_none() -> None:
    assert said(None, None) == (None, "")


@pytest.mark.parametrize(
    ("cpu", "cpus"),
    [("whole", None), (None, "2"), ("mine", "2"), ("whole", "0"), ("whole", "-1"), ("whole", "1e3")]
    + [("whole", "nan"), ("whole", "99999"), ("whole", "0.0004"), ("whole", "\u0662"), ("", "")],
)
def test_half_a_wish_or_nonsense_is_none_and_is_said(cpu: str | None, cpus: str | None) -> None:
    wish, complaint = said(cpu, cpus)
    assert wish is None
    assert "ignored" in complaint


def test_where_the_configuration_allows_none_a_wish_is_ignored_and_that_is_said() -> None:
    wish, complaint = said("whole", "2", may_reserve=False)
    assert wish is None
    assert "[containers] most_cpus allows none" in complaint


def test_cpus_for_who_asks_come_with_annotations_only() -> None:
    seen = period(Group("web", [Row()], wish=CpuWish("whole", 1000)))
    reservations = (
        check({"containers": {"annotations": True, "most_cpus": 1.5}}, "any").parameters().reservations
    )
    assert reservations is not None
    assert reservations.by_themselves == 1500
    assert [ask.name for ask in reservations.own_asks_of(seen)] == ["web"]
    assert check({"containers": {"annotations": True}}, "any").parameters().reservations is None
