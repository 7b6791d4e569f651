"""Finding and running the native load tool, its samples, and histograms that add up."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.errors import ExitStatus, Refusal
from dasec.lab import load_tool
from dasec.lab.load_tool import (
    Latencies,
    command,
    find_tool,
    latencies,
    merge,
    merged,
    percentile_curve,
    read_sojourns,
)

PRECISION = 2 * 10**-load_tool.DIGITS
VALUES = st.lists(st.integers(load_tool.LOWEST_NS, 10**12), min_size=1, max_size=200)

FAKE_TOOL = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$2 ;;
    --samples) samples=$2 ;;
    --fail) echo 'dasec-load: --rate: must be positive' >&2; exit 2 ;;
    esac
    shift
done
cat >"$out" <<END
{"tool": "dasec-load", "completed": 2, "errors": 0, "unfinished": 1,
 "parameters": {"drain_seconds": 0.5}, "latency_ns": {"count": ${COUNT:-2}}}
END
[ -z "$samples" ] || cp "$SAMPLES" "$samples"
"""


@pytest.fixture
def fake_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the native tool that always measures the same two requests."""
    tool, samples = tmp_path / "fake", tmp_path / "two"
    tool.write_text(FAKE_TOOL)
    tool.chmod(0o755)
    samples.write_bytes(struct.pack("<6Q", 1, 2, 1_000_000, 3, 4, 3_000_000))
    monkeypatch.setenv("SAMPLES", str(samples))
    monkeypatch.setenv(load_tool.TOOL_ENVIRONMENT, str(tool))
    return tool


def assert_same(one: Latencies, other: Latencies) -> None:
    assert one.count == other.count
    assert one.mean_ns == pytest.approx(other.mean_ns)
    assert one.percentiles_ns == other.percentiles_ns


@settings(max_examples=20)
@given(VALUES, VALUES)
def test_merged_histograms_are_the_histogram_of_all_samples(first: list[int], second: list[int]) -> None:
    assert_same(merged([latencies(first).hdr, latencies(second).hdr]), latencies(first + second))


@settings(max_examples=20)
@given(VALUES)
def test_a_histogram_is_as_precise_as_it_says(values: list[int]) -> None:
    figures = latencies(values)
    nearest_rank = sorted(values)[max(0, -(-len(values) * 50 // 100) - 1)]
    assert figures.count == len(values)
    assert figures.mean_ns == pytest.approx(sum(values) / len(values), rel=PRECISION, abs=load_tool.LOWEST_NS)
    assert figures.percentiles_ns["p50"] == pytest.approx(
        nearest_rank, rel=PRECISION, abs=load_tool.LOWEST_NS
    )


@settings(max_examples=20)
@given(VALUES)
def test_every_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values: list[int]) -> None:
    found_ns, ordered = latencies(values).percentiles_ns, sorted(values)
    for name, thousandths in {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p999": 999}.items():
        nearest_rank = ordered[-(-len(values) * thousandths // 1000) - 1]
        assert found_ns[name] == pytest.approx(nearest_rank, rel=PRECISION, abs=load_tool.LOWEST_NS)


@pytest.mark.parametrize(
    ("count", "p99", "p999"),
    [(48, 48, 48), (60, 60, 60), (80, 80, 80), (99, 99, 99), (100, 99, 100), (150, 149, 150)],
)
def test_of_few_requests_the_slowest_is_not_lost(count: int, p99: int, p999: int) -> None:
    found_ns = latencies(range(1_000_000, (count + 1) * 1_000_000, 1_000_000)).percentiles_ns
    assert [round(found_ns[name] / 1e6) for name in ("p99", "p999")] == [p99, p999]


def test_a_value_beyond_the_range_counts_at_its_end() -> None:
    assert latencies([10**15]).percentiles_ns["p50"] == pytest.approx(load_tool.HIGHEST_NS, rel=PRECISION)


def test_no_samples_give_a_histogram_of_nothing() -> None:
    empty = latencies([])
    assert (empty.count, empty.mean_ns) == (0, 0.0)
    assert merged([empty.hdr, latencies([5_000_000]).hdr]).count == 1


def test_a_percentile_curve_rises() -> None:
    curve = percentile_curve(latencies(range(10_000, 10_000_000, 10_000)).hdr, (0, 50, 90, 99, 100))
    assert list(curve) == sorted(curve)
    assert curve[1] == pytest.approx(5_000_000, rel=0.01)


def test_the_third_word_of_each_sample_is_the_sojourn(tmp_path: Path) -> None:
    (tmp_path / "samples").write_bytes(struct.pack("<6Q", 1, 2, 3, 4, 5, 9))
    assert list(read_sojourns(tmp_path / "samples")) == [3, 9]


def test_a_torn_samples_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "samples").write_bytes(struct.pack("<4Q", 1, 2, 3, 4))
    with pytest.raises(Refusal, match="whole number of samples"):
        read_sojourns(tmp_path / "samples")


def test_the_environment_names_the_tool_first(fake_tool: Path) -> None:
    assert find_tool() == fake_tool


def test_a_missing_tool_is_one_line_that_says_make_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_tool, "CHECKOUT_TOOL", tmp_path / "not-built")
    with pytest.raises(Refusal, match="make load") as refused:
        find_tool({"PATH": str(tmp_path)})
    assert refused.value.status is ExitStatus.HOST


def test_a_tool_in_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_tool, "CHECKOUT_TOOL", tmp_path / "not-built")
    (tmp_path / load_tool.TOOL).touch(mode=0o755)
    assert find_tool({"PATH": str(tmp_path)}) == tmp_path / load_tool.TOOL


def test_an_environment_that_names_no_program_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="not an executable") as refused:
        find_tool({load_tool.TOOL_ENVIRONMENT: str(tmp_path / "nothing")})
    assert refused.value.status is ExitStatus.USAGE


@pytest.mark.usefixtures("fake_tool")
@pytest.mark.parametrize("subcommand", ["service", "memcached"])
def test_a_result_is_printed_with_its_histogram(subcommand: str) -> None:
    done = CliRunner().invoke(command, [subcommand, "--rate", "5"], catch_exceptions=False)
    result = json.loads(done.output)
    assert result["tool"] == "dasec-load"
    assert merged([result["hdr"]]).count == 2


@pytest.mark.usefixtures("fake_tool")
def test_what_has_no_samples_has_no_histogram() -> None:
    done = CliRunner().invoke(command, ["threads", "--count", "5"], catch_exceptions=False)
    assert "hdr" not in json.loads(done.output)


@pytest.mark.usefixtures("fake_tool")
def test_the_tools_own_refusal_passes_through() -> None:
    assert CliRunner().invoke(command, ["service", "--fail"]).exit_code == 2


@pytest.mark.parametrize("option", ["--out", "--samples=x"])
def test_an_option_that_is_set_here_is_wrong_usage(option: str) -> None:
    with pytest.raises(Refusal, match="is set here"):
        load_tool.run(["service", option, "x"])


@pytest.mark.usefixtures("fake_tool")
def test_results_merge_from_their_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = CliRunner().invoke(command, ["service"], catch_exceptions=False)
        (tmp_path / name).write_text(done.output)
    done = CliRunner().invoke(
        command, ["merge", str(tmp_path / "a"), str(tmp_path / "b")], catch_exceptions=False
    )
    result = json.loads(done.output)
    assert (result["completed"], result["unfinished"], result["latency_ns"]["count"]) == (4, 2, 4)


@pytest.mark.usefixtures("fake_tool")
def test_requests_without_an_answer_are_as_late_in_the_histogram_as_in_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COUNT", "5")  # of latencies; two requests have samples
    done = CliRunner().invoke(command, ["memcached"], catch_exceptions=False)
    found = merged([json.loads(done.output)["hdr"]])
    assert found.count == 5
    assert found.percentiles_ns["p50"] == pytest.approx(0.5e9, rel=PRECISION)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("nonsense", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "no JSON object"),
        ("{}", "hdr: missing"),
        ('{"hdr": "garbage"}', "cannot be decoded"),
        (json.dumps({"hdr": latencies([5_000]).hdr}), "completed: no such number"),
        (json.dumps({"hdr": latencies([5_000]).hdr, "completed": math.nan}), "completed: no such number"),
        (json.dumps({"hdr": latencies([5_000]).hdr, "completed": math.inf}), "completed: no such number"),
    ],
)
def test_a_damaged_result_is_wrong_usage_in_one_line(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "a").write_text(content)
    with pytest.raises(Refusal, match=complaint) as refused:
        merge([tmp_path / "a"])
    assert refused.value.status is ExitStatus.USAGE
    assert len(refused.value.lines) == 1
