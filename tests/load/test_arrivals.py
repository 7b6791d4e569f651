"""The arrival schedule: a Poisson process that depends on seed, rate and length only."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest

from .tool import Tool, read_uint64

NS = 1_000_000_000


def schedule(tool: Tool, folder: Path, *arguments: str) -> bytes:
    """The arrivals file of a run that does next to nothing for each request."""
    path = folder / "arrivals"
    tool.run(
        *("service", "--helpers", "0", "--serial-us", "0", "--seconds", "0.5", "--warmup", "0.1"),
        *("--arrivals", str(path), *arguments),
    )
    return path.read_bytes()


def test_the_same_seed_gives_the_same_arrivals(tool: Tool, tmp_path: Path) -> None:
    first = schedule(tool, tmp_path, "--seed", "7", "--rate", "1000")
    assert first == schedule(tool, tmp_path, "--seed", "7", "--rate", "1000")
    assert len(first) > 0


def test_another_seed_gives_other_arrivals(tool: Tool, tmp_path: Path) -> None:
    first = schedule(tool, tmp_path, "--seed", "7", "--rate", "1000")
    assert first != schedule(tool, tmp_path, "--seed", "8", "--rate", "1000")


@pytest.mark.parametrize(
    "other", [["--variant", "pipeline", "--helper-us", "0"], ["--background", "1"], ["--feeder"]]
)
def test_arrivals_do_not_depend_on_what_serves_them(tool: Tool, tmp_path: Path, other: list[str]) -> None:
    plain = schedule(tool, tmp_path, "--seed", "7", "--rate", "500")
    path = tmp_path / "other"
    tool.run(
        *("service", "--serial-us", "0", "--seconds", "0.5", "--warmup", "0.1"),
        *("--seed", "7", "--rate", "500", "--arrivals", str(path), *other),
    )
    assert path.read_bytes() == plain


def test_gaps_are_exponential_with_the_asked_rate(tool: Tool, tmp_path: Path) -> None:
    # An interrupted run has written its schedule, so 40 000 gaps need no 40 seconds.
    path = tmp_path / "arrivals"
    run = tool.start(
        *("service", "--rate", "1000", "--seconds", "40", "--warmup", "0", "--arrivals", str(path))
    )
    run.terminate()
    offsets = read_uint64(path)
    gaps = [later - earlier for earlier, later in itertools.pairwise(offsets)]
    mean = statistics.fmean(gaps)
    assert offsets == sorted(offsets)
    assert offsets[-1] < 40 * NS
    # 5 standard errors of an exponential's mean, and of its variance (kurtosis 9)
    assert mean == pytest.approx(NS / 1000, rel=5 / len(gaps) ** 0.5)
    assert statistics.pvariance(gaps) == pytest.approx(mean**2, rel=5 * (8 / len(gaps)) ** 0.5)
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.02)


def test_a_step_changes_the_rate_from_its_time_on_and_nothing_before(tool: Tool, tmp_path: Path) -> None:
    long = ("--rate", "1000", "--seconds", "40", "--warmup", "0")
    plain, stepped = tmp_path / "plain", tmp_path / "stepped"
    for path, step in ((plain, ()), (stepped, ("--step-at", "20", "--step-rate", "3000"))):
        tool.start("service", *long, "--arrivals", str(path), *step).terminate()
    early = [offset for offset in read_uint64(plain) if offset < 20 * NS]
    offsets = read_uint64(stepped)
    assert offsets[: len(early)] == early
    later = [offset for offset in offsets if offset >= 20 * NS]
    assert len(early) + len(later) == len(offsets)
    gaps = [after - before for before, after in itertools.pairwise(later)]
    # 5 standard errors of an exponential's mean, and of its variance (kurtosis 9)
    mean = statistics.fmean(gaps)
    assert mean == pytest.approx(NS / 3000, rel=5 / len(gaps) ** 0.5)
    assert statistics.pvariance(gaps) == pytest.approx(mean**2, rel=5 * (8 / len(gaps)) ** 0.5)


def test_arrivals_within_the_warm_up_are_not_measured(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "arrivals"
    result = tool.run(
        *("service", "--helpers", "0", "--serial-us", "0", "--rate", "400", "--seconds", "0.5"),
        *("--warmup", "0.3", "--arrivals", str(path)),
    )
    offsets = read_uint64(path)
    early = sum(offset < 0.3 * NS for offset in offsets)
    assert result["warmup_arrivals"].integer() == early
    assert result["arrivals_scheduled"].integer() == len(offsets) - early
