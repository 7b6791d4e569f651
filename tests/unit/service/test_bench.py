"""The benchmark asks for the load that it says, and computes what it says."""

from __future__ import annotations

import math
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dasec.config.config import check
from dasec.errors import ExitStatus, Refusal
from dasec.lab.overhead.burners import BUSY, VCPUS_A_WORKLOAD, burden
from dasec.lab.overhead.command import command, line, rendered, sizes
from dasec.lab.overhead.overhead import PERIOD_S, Overhead, configuration, last_line, lines_of, percentile
from dasec.lab.overhead.plot import draw

RESULT = Overhead(
    policy="dasec",
    vcpus=256,
    workloads=16,
    periods=250,
    cpu_percent_of_one_core=0.9,
    cpu_us_per_period=720.0,
    period_mean_ms=0.7,
    period_p99_ms=1.5,
    period_max_ms=2.5,
    rss_mib=30.0,
    keeper_rss_mib=12.0,
    stage_mean_us={"observe": 300.0, "record": 90.0},
    active_fraction=0.3,
    load_percent_of_host=30.0,
    changes_per_period=3.0,
    late_periods=0,
    look_every_ms=80.0,
    budget_percent=None,
    start_cpu_s=0.5,
    fan_out=False,
    burst_us=500.0,
    bursts_per_s_per_vcpu=4.7,
    dry_run=False,
)


@given(st.integers(2, 4096), st.none() | st.floats(0.01, 0.99), st.integers(1, 64))
def test_the_load_keeps_the_host_as_busy_as_it_says(vcpus: int, active: float | None, cores: int) -> None:
    load = burden(vcpus, active, PERIOD_S, cores)
    assert vcpus * load.rate_hz * load.burst_us / 1e6 == pytest.approx(BUSY * cores)
    assert load.workloads == math.ceil(vcpus / VCPUS_A_WORKLOAD)


@given(st.integers(2, 4096), st.floats(0.01, 0.99))
def test_the_asked_fraction_of_vcpus_has_a_burst_in_a_period(vcpus: int, active: float) -> None:
    load = burden(vcpus, active, PERIOD_S, 2)
    assert 1 - math.exp(-load.rate_hz * PERIOD_S) == pytest.approx(active)


def test_the_configuration_of_the_daemon_is_valid() -> None:
    config = check(tomllib.loads(configuration("critical", [(1,), (2, 3)], own_cgroups=True)), "bench")
    assert [workload.pids for workload in config.workload] == [(1,), (2, 3)]
    assert config.host.own_cgroups
    assert config.policy == "critical"


@given(st.lists(st.integers(), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_is_the_smallest_value_that_enough_others_do_not_exceed(
    values: list[int], part: float
) -> None:
    found = percentile(values, part)
    assert sum(value <= found for value in values) >= part * len(values)
    assert sum(value < found for value in values) < part * len(values)


def test_a_sweep_is_a_list_of_sizes() -> None:
    assert sizes("16,64, 256") == [16, 64, 256]


@pytest.mark.parametrize("text", ["", "x", "16,", "1", "16385", "-4"])
def test_what_is_no_list_of_sizes_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="give numbers from 2 to 16384"):
        sizes(text)


def test_the_json_has_the_names_that_the_documentation_promises() -> None:
    assert all(key in rendered(RESULT) for key in ("cpu_percent_of_one_core", "period_p99_ms", "rss_mib"))
    assert rendered([RESULT, RESULT]).startswith("[")


def test_the_line_for_a_person_tells_the_same() -> None:
    told = line(RESULT)
    assert "256 vCPUs in 16 workloads, 30 % active: 0.90 % of one core" in told
    assert told.endswith("stages in us: observe 300, record 90")


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    draw([replace(RESULT, vcpus=size) for size in (16, 64, 256)], tmp_path / "o.png")
    draw([RESULT], tmp_path / "o.picture")
    for name in ("o.png", "o.picture"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for plot in (tmp_path / "file" / "o.png", tmp_path / ("o" * 300)):
        error = (
            CliRunner().invoke(command, ["--vcpus", "2", "--periods", "10", "--plot", str(plot)]).exception
        )
        assert isinstance(error, Refusal)
        assert (error.status, len(error.lines)) == (ExitStatus.USAGE, 1)


def test_a_picture_without_the_library_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = CliRunner().invoke(command, ["--vcpus", "2", "--plot", str(tmp_path / "o.png")]).exception
    assert isinstance(error, Refusal)
    assert error.status == ExitStatus.HOST
    mend = f"in the clone, `{sys.executable} -m pip install '.[demo]'`"
    assert error.lines == (f"bench overhead --plot: matplotlib: not installed: {mend}",)


def test_a_record_that_does_not_exist_yet_has_no_lines(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "record") == 0
    (tmp_path / "record").write_bytes(b"a\nb\nc")
    assert lines_of(tmp_path / "record") == 2


def test_the_last_words_of_a_daemon_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\ntwo\n")
    assert last_line(tmp_path) == "two"
    (tmp_path / "log").write_text("")
    assert last_line(tmp_path) == "it said nothing"
