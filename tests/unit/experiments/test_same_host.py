"""An experiment goes on where it was begun, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts
from experiments.places.ground import this_host
from experiments.results.store import Asked


def test_a_new_folder_is_of_this_host(tmp_path: Path) -> None:
    assert this_host(None, tmp_path)["kernel"] == facts.metadata()["kernel"]


def test_the_same_host_goes_on_with_what_was_noted_at_the_start(tmp_path: Path) -> None:
    began: dict[str, object] = {**facts.metadata(), "load_average": [0.1, 0.1, 0.1], "calibration": 900.0}
    assert this_host(Asked("anything", began), tmp_path) == began


@pytest.mark.parametrize("name", ["kernel", "machine", "cpus", "cpu_model"])
def test_another_host_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    began: dict[str, object] = {**facts.metadata(), name: "another"}
    with pytest.raises(Refusal, match=rf"of another host \({name}\): name another folder") as caught:
        this_host(Asked("anything", began), tmp_path)
    assert (caught.value.status, len(caught.value.lines)) == (ExitStatus.USAGE, 1)
