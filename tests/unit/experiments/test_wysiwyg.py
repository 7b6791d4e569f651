"""WYSIWYG's simulation: what is kept gives the published tables, and a small fleet adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies.wysiwyg.fleet import Outcome, Placement, containers, fleet
from experiments.studies.wysiwyg.published import read, sizes_table, table

HOME = Path(__file__).parents[3] / "experiments/studies/wysiwyg"


def simulated(part: float, placement: Placement) -> Outcome:
    """Four hosts that are asked for more than they have."""
    return fleet(4, placement).run(containers(1, 200, 4, 2.0), part, 0.2)


def test_the_kept_runs_give_the_published_tables() -> None:
    rows = read(HOME / "results")
    published = (HOME / "README.md").read_text(encoding="utf-8")
    for line in table(rows).splitlines()[2:]:
        part, *values = line.strip("| ").split(" | ")
        for first in (0, 3, 6):
            assert f"| {part} | {' | '.join(values[first : first + 3])} |" in published


def test_the_page_shows_what_as_many_hosts_as_the_papers_gave() -> None:
    assert table(read(HOME / "results/12500")) in (HOME / "README.md").read_text(encoding="utf-8")


def test_the_page_shows_what_other_numbers_of_hosts_gave() -> None:
    assert sizes_table(HOME / "results") in (HOME / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("placement", Placement)
def test_a_seed_gives_the_same_again(placement: Placement) -> None:
    assert simulated(0.8, placement)[:3] == simulated(0.8, placement)[:3]


def test_without_exclusive_containers_nothing_is_shared_or_refused() -> None:
    assert simulated(0.0, Placement.OPTIMISED)[:3] == (0.0, 0, 0)


def test_spreading_refuses_fewer_and_shares_more() -> None:
    hard, spread = simulated(1.0, Placement.OPTIMISED), simulated(1.0, Placement.BEST_EFFORT)
    assert hard.refused > 0
    assert spread.refused < hard.refused
    assert hard.shared < spread.shared <= 1


def test_who_is_exclusive_at_a_small_part_is_so_at_a_larger_one() -> None:
    drawn = [container.drawn for container in containers(3, 50, 4, 1.0)]
    assert sum(each < 0.3 for each in drawn) < sum(each < 0.6 for each in drawn)
    assert list(containers(3, 50, 4, 1.0))[:20] == list(containers(3, 50, 4, 1.0))[:20]
