"""What the keeper sees to before it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.safety.keeping import spare
from dasec.safety.outside import Outside


@pytest.mark.parametrize(("found", "then"), [("0\n", "-500"), ("-997\n", "-997\n")])
def test_it_is_spared_when_memory_runs_out_and_gives_up_nothing_that_it_was_given(
    tmp_path: Path, found: str, then: str
) -> None:
    score = tmp_path / "oom_score_adj"
    score.write_text(found)
    spare(score)
    assert score.read_text() == then


def test_where_no_cgroups_are_mounted_it_does_not_pretend_to_have_left_the_container() -> None:
    with pytest.raises(OSError, match="no hierarchy of cgroups is mounted here"):
        Outside("dasec-keeper", ()).enter()


def test_without_a_group_of_its_own_it_stays_where_it_is() -> None:
    Outside.named("").enter()
