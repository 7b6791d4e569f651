"""The tables and the picture, from planted results."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dasec.lab.demo.arms import CONTROL, NONE
from dasec.lab.demo.comparison import LATENCIES, compare, verdict_on
from dasec.lab.demo.document import document
from dasec.lab.demo.layout import Layout
from dasec.lab.demo.plot import draw
from dasec.lab.demo.report import notes, print_report
from dasec.lab.demo.results import ALL, Measured
from dasec.lab.demo.run import Plan
from dasec.lab.demo.scenario import Timing, scenario_for
from dasec.lab.demo.statistics import Verdict
from dasec.lab.load_tool import merged

from .build import TENANTS, measured

GOLDEN = Path(__file__).with_name("report.txt")
WIDTH = 100


@pytest.fixture(scope="module")
def planted() -> Measured:
    """One policy that halves every latency, one that makes them half as long again, one like the default."""
    return measured(
        {
            NONE: lambda repetition: 1.0,
            CONTROL: lambda repetition: 1.0 + 0.01 * (repetition - 2),
            "better": lambda repetition: 0.5 + 0.01 * repetition,
            "worse": lambda repetition: 1.5 - 0.01 * repetition,
            "equal": lambda repetition: 1.0 + 0.005 * (repetition - 2),
        }
    )


def report(results: Measured) -> str:
    output = io.StringIO()
    print_report(Console(file=output, width=WIDTH, color_system=None), results, compare(results))
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def test_planted_effects_get_their_verdicts(planted: Measured) -> None:
    comparisons = compare(planted)
    assert verdict_on("better", comparisons) is Verdict.GAIN
    assert verdict_on("worse", comparisons) is Verdict.HARM
    assert verdict_on("equal", comparisons) is Verdict.NO_EFFECT
    for workload in (ALL, *planted.kinds, *TENANTS):
        assert verdict_on("better", comparisons, workload) is Verdict.GAIN


def test_planted_ratios_are_estimated(planted: Measured) -> None:
    found = {(one.arm, one.metric): one.estimate for one in compare(planted) if one.workload == ALL}
    assert found["better", "mean"].ratio == pytest.approx(0.52, rel=0.01)
    assert found["worse", "p99"].ratio == pytest.approx(1.48, rel=0.01)


def test_the_control_itself_and_the_throughput_get_no_verdict(planted: Measured) -> None:
    for one in compare(planted):
        assert (one.verdict is None) == (one.arm == CONTROL or one.metric not in LATENCIES)


def test_the_report_is_the_golden_one(planted: Measured) -> None:
    assert report(planted) == GOLDEN.read_text(encoding="utf-8")


def test_every_arm_figure_and_doubt_is_in_the_report(planted: Measured) -> None:
    text = report(planted)
    for word in (*planted.arms, *planted.kinds, *LATENCIES, "gain", "harm", "no effect", "CPU", "A/A"):
        assert word in text
    assert all(len(line) <= WIDTH for line in text.splitlines())


def test_requests_that_were_not_served_are_confessed(planted: Measured) -> None:
    run = planted.runs[0]
    lossy = replace(
        run,
        tenants=(replace(run.tenants[0], unfinished=7, errors=3), *run.tenants[1:]),
        steal=0.2,
        other_cores=0.5,
    )
    results = replace(planted, runs=(lossy, *planted.runs[1:]))
    text = " ".join(notes(results, compare(results)))
    assert "none: 7 requests had no answer" in text
    assert "none: 3 requests failed" in text
    assert "up to 20.0% of the CPU time" in text
    assert "0.04 cores on average and 0.50 in the worst run" in text
    assert "requests" not in " ".join(notes(planted, compare(planted)))


def test_too_few_repetitions_are_said_to_be_too_few() -> None:
    results = measured({NONE: lambda _: 1.0, CONTROL: lambda _: 1.0, "better": lambda _: 0.5}, repetitions=2)
    assert verdict_on("better", compare(results)) is Verdict.UNDECIDED


def test_the_plot_is_a_picture_with_something_on_it(planted: Measured, tmp_path: Path) -> None:
    from matplotlib import image

    draw(planted, compare(planted), tmp_path / "plot.png")
    pixels = image.imread(tmp_path / "plot.png")
    assert pixels.shape[0] > 600
    assert pixels.shape[1] > 900
    coloured = (pixels[..., :3].max(axis=2) - pixels[..., :3].min(axis=2)) > 0.3
    assert coloured.mean() > 0.002


def test_the_json_holds_everything_and_its_histograms_decode(planted: Measured) -> None:
    plan = Plan(scenario_for(2), Layout.VM, Timing(5.0), planted.arms, 5, 1)
    content = json.loads(json.dumps(document(plan, planted, compare(planted), {"kernel": "x"}, ["noisy"])))
    assert len(content["runs"]) == len(planted.arms) * planted.repetitions
    assert merged([run["tenants"][0]["latencies"]["hdr"] for run in content["runs"]]).count == 25 * 200
    assert content["verdicts"] == {"better": "gain", "worse": "harm", "equal": "no effect"}
    assert content["scenario"]["consolidation_ratio"] == 5.0
    assert len(content["orders"]) == 5
