"""The lines, the table, the sentence and the picture, from planted results."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dasec.lab.demo.document import document
from dasec.lab.demo.lines import Answer, Line, lines_of
from dasec.lab.demo.plot import draw, marks
from dasec.lab.demo.report import NEXT_STEP, notes, print_report, sentence
from dasec.lab.demo.situations import situations_for
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.results import Measured, RunResult
from dasec.lab.kit.scenario import Timing
from dasec.lab.load_tool import merged

from .build import measured

GOLDEN = Path(__file__).with_name("report.txt")
WIDTH = 110
REPETITIONS = 8


@pytest.fixture(scope="module")
def planted() -> Measured:
    """One policy that halves every latency, one that makes them half as long again, one like the default."""
    return measured(
        {
            NONE: lambda repetition: 1.0,
            CONTROL: lambda repetition: 1.0 + 0.01 * (repetition - 3.5),
            "better": lambda repetition: 0.5 + 0.01 * repetition,
            "worse": lambda repetition: 1.5 - 0.01 * repetition,
            "equal": lambda repetition: 1.0 + 0.005 * (repetition - 3.5),
        },
        REPETITIONS,
    )


def lines(*results: Measured) -> list[Line]:
    return [line for one in results for line in lines_of("busy", one)]


def answers(results: Measured) -> dict[str, Answer]:
    return {line.policy: line.answer for line in lines(results)}


def report(*results: Measured) -> str:
    output = io.StringIO()
    print_report(Console(file=output, width=WIDTH, color_system=None), lines(*results), results)
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def test_planted_effects_get_their_answers(planted: Measured) -> None:
    assert answers(planted) == {"better": Answer.GAIN, "worse": Answer.HARM, "equal": Answer.NOTHING}


def test_planted_ratios_are_estimated(planted: Measured) -> None:
    found = {line.policy: line.effect for line in lines(planted)}
    assert found["better"][0].ratio == pytest.approx(0.53, rel=0.02)
    assert found["worse"][1].ratio == pytest.approx(1.47, rel=0.02)


@pytest.mark.parametrize(("less", "answer"), [("equal", Answer.GAIN), ("better", Answer.HARM)])
def test_a_gain_that_background_work_paid_for_is_harm(planted: Measured, less: str, answer: Answer) -> None:
    def working(run: RunResult) -> RunResult:
        cores = 0.5 if run.arm == less else 1.0
        return replace(run, tenants=tuple(replace(one, background_cores=cores) for one in run.tenants))

    assert answers(replace(planted, runs=tuple(map(working, planted.runs))))["better"] is answer


def test_one_workload_that_stalls_changes_nothing(planted: Measured) -> None:
    def stalled(run: RunResult) -> RunResult:
        first, *others = run.tenants
        slow = replace(first.latencies, mean_ns=(10 if run.arm == "better" else 1) * first.latencies.mean_ns)
        return replace(run, tenants=(replace(first, latencies=slow), *others))

    assert answers(replace(planted, runs=tuple(map(stalled, planted.runs))))["better"] is Answer.GAIN


def test_a_host_that_differs_from_itself_cannot_tell() -> None:
    shaky = measured(
        {NONE: lambda _: 1.0, CONTROL: lambda repetition: 3.0 ** (-1) ** repetition, "better": lambda _: 0.5},
        REPETITIONS,
    )
    (line,) = lines(shaky)
    assert line.answer is Answer.UNTOLD
    assert "cannot tell: plain runs differ from each other by" in sentence([line])


def test_a_policy_whose_runs_differ_from_each_other_cannot_be_told() -> None:
    moody = measured(
        {NONE: lambda _: 1.0, CONTROL: lambda _: 1.0, "moody": lambda repetition: (0.4, 1.2)[repetition % 2]},
        REPETITIONS,
    )
    (line,) = lines(moody)
    assert line.answer is Answer.UNTOLD
    assert "cannot tell: runs with moody differ from plain ones by" in sentence([line])


def test_too_few_repetitions_are_said_to_be_too_few() -> None:
    few = measured({NONE: lambda _: 1.0, CONTROL: lambda _: 1.0, "better": lambda _: 0.5}, repetitions=2)
    (line,) = lines(few)
    assert line.answer is Answer.UNTOLD
    assert "too few --repetitions" in sentence([line])
    assert "inf" not in report(few)  # no interval, and not one without an end


@pytest.mark.parametrize("arm", ["better", NONE, CONTROL])
def test_with_requests_that_failed_nothing_is_called_a_gain(planted: Measured, arm: str) -> None:
    def failing(run: RunResult) -> RunResult:
        first, *others = run.tenants
        return replace(run, tenants=(replace(first, errors=run.arm == arm and 1), *others))

    found = {line.policy: line for line in lines(replace(planted, runs=tuple(map(failing, planted.runs))))}
    assert found["better"].answer is Answer.UNTOLD
    assert f"This host cannot tell: {REPETITIONS} requests failed" in sentence([found["better"]])
    assert found["worse"].answer is Answer.HARM
    assert found["equal"].answer is (Answer.NOTHING if arm == "better" else Answer.UNTOLD)


def test_the_sentence_says_what_to_do_next(planted: Measured) -> None:
    found = {line.policy: line for line in lines(planted)}
    assert sentence([found["better"]]).endswith(f"take 0.53 of the time (p99 0.53): {NEXT_STEP}")
    assert sentence([found["equal"]]).startswith("No effect was seen on this host")
    assert sentence([found["better"], found["worse"]]).startswith('Harm in "busy" with worse')


def test_the_report_is_the_golden_one(planted: Measured) -> None:
    assert report(planted) == GOLDEN.read_text(encoding="utf-8")


def test_every_figure_and_doubt_is_in_the_report(planted: Measured) -> None:
    text = report(planted)
    for word in ("better", "worse", "equal", "mean", "p99", "gain", "harm", "no effect", "A/A"):
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
    text = " ".join(notes(lines(results), [results]))
    assert "none: 7 requests had no answer" in text
    assert "none: 3 requests failed and count as 5 s" in text
    assert "up to 20.0% of the CPU time" in text
    assert "0.50 in the worst run" in text
    assert "requests" not in " ".join(notes(lines(planted), [planted]))


def test_the_plot_is_a_picture_with_something_on_it(planted: Measured, tmp_path: Path) -> None:
    from matplotlib import image

    draw(["busy", "half busy"], [planted, planted], lines(planted, planted), tmp_path / "plot.png")
    pixels = image.imread(tmp_path / "plot.png")
    assert pixels.shape[0] > 600
    assert pixels.shape[1] > 900
    coloured = (pixels[..., :3].max(axis=2) - pixels[..., :3].min(axis=2)) > 0.3
    assert coloured.mean() > 0.002


def test_the_json_holds_everything_and_its_histograms_decode(planted: Measured) -> None:
    situations = situations_for(2)[:1]
    plans = [RunPlan(situations[0].scenario, GroupLayout.VM, Timing(5.0), planted.arms, REPETITIONS, 1)]
    told = document(situations, plans, [planted], lines(planted), {"kernel": "x"}, ["noisy"])
    content = json.loads(json.dumps(told))
    (one,) = content["situations"]
    assert len(one["runs"]) == len(planted.arms) * planted.repetitions
    assert merged([run["tenants"][0]["latencies"]["hdr"] for run in one["runs"]]).count == 40 * 200
    assert {line["policy"]: line["answer"] for line in content["lines"]} == {
        "better": "gain",
        "worse": "harm",
        "equal": "no effect",
    }
    assert one["consolidation_ratio"] == 7.5
    assert len(one["orders"]) == REPETITIONS


def test_the_json_of_too_few_repetitions_is_json() -> None:
    few = measured({NONE: lambda _: 1.0, CONTROL: lambda _: 1.0, "better": lambda _: 0.5}, repetitions=3)
    told = document((), (), (), lines(few), {}, [])
    (line,) = json.loads(json.dumps(told, allow_nan=False))["lines"]
    assert (line["answer"], line["effect"][0]["high"]) == (Answer.UNTOLD, None)


def test_a_wide_axis_of_ratios_has_fewer_marks() -> None:
    assert marks(0.65, 1.3) == [0.7, 0.8, 0.9, 1, 1.1, 1.2]
    assert marks(0.45, 6) == [0.5, 0.7, 1, 1.5, 2, 3, 5]
