"""The suite in counted guests and its variants of `critical`, without a guest."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.config.config import check
from dasec.errors import Refusal
from dasec.lab.kit.bench import record_name
from dasec.lab.kit.controller import Managed, configuration
from experiments.places.counted.cpus import Cpus
from experiments.places.counted.inside import RECORD, RUN, tell
from experiments.plan import file
from experiments.plan.cells import Cell, Suite
from experiments.plan.order import Order
from experiments.plan.terms import Place, PlacedCell
from experiments.plan.variants import Variant, variant_of
from experiments.plan.word import told_in
from experiments.results.analysis import Summary, summarise
from experiments.results.sensitivity import draw_sensitivity, sensitivity, values_of
from experiments.results.store import Done
from experiments.run.guests import task_for
from experiments.run.planned import blocks, experiment_in

from .test_results import WISH, run

COMMAND_LINE_SIZE = 2048
"""Of the x86 kernel; the fixed words of counted/machine.py take 200 of it."""

SWEPT = {
    "weight_ratio": ("3", "20"),
    "decay_percent": ("60", "85", "95"),
    "burst_us": ("500", "2000", "8000"),
    "deadband_percent": ("4", "20", "25"),
}
VARIANTS = tuple(Variant(constant, value) for constant, values in SWEPT.items() for value in values)
COUNTED = Path(__file__).resolve().parents[4] / "experiments/studies/loads/counted.toml"
SLOWER = {"critical:weight_ratio=3": 0.5}
ANY = Managed("any", 1024, (1,))
WIDE = replace(
    WISH, place=Place.COUNTED, policies=("critical", "oracle", *(variant.arm for variant in VARIANTS))
)


def test_a_guest_is_told_its_block_in_one_short_word() -> None:
    for block in blocks(WIDE):
        task = task_for(WIDE, block)
        assert len(task.word) < COMMAND_LINE_SIZE - 200
        assert not set(task.word) & set(" \"'\\")
        order = Order.read(task.word)
        assert (order.experiment, order.block, task.runs) == (WIDE, block, len(WIDE.arms))
        assert order.experiment.plan(order.block) == WIDE.plan(block)


def test_every_guest_has_a_task_of_its_own() -> None:
    every = blocks(WIDE)
    assert len({task_for(WIDE, block) for block in every}) == len(every)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.arm))
def test_a_variant_is_found_in_its_arm_and_changes_one_constant(variant: Variant) -> None:
    assert variant_of(variant.arm) == variant
    usual, varied = (
        check(tomllib.loads(configuration("critical", [ANY], text)), "test").model_dump()["critical"]
        for text in ('policy = "critical"', variant.settings)
    )
    differ = {name for name in usual if usual[name] != varied[name]}
    assert differ <= {variant.constant}
    assert str(varied[variant.constant]) == variant.value


@pytest.mark.parametrize("arm", ["none", "critical", "oracle", "critical+guard"])
def test_other_arms_are_no_variants(arm: str) -> None:
    assert variant_of(arm) is None


def counted(*settings: str) -> Suite:
    found = experiment_in(file.told_in(COUNTED, settings), COUNTED)
    assert isinstance(found, Suite)
    return found


@pytest.mark.parametrize(
    "text", ["weight_ratio=1", "weight_ratio", "wait_ratio=3", "burst_us=", "burst_us=1.5"]
)
def test_a_constant_that_the_daemon_would_refuse_is_refused_before_the_first_run(text: str) -> None:
    with pytest.raises(Refusal, match="policies"):
        counted(f'policies=["critical:{text}"]')


def test_the_daemon_is_told_the_constant_of_its_arm_alone() -> None:
    block = blocks(WIDE)[0]
    settings = WIDE.plan(block).settings
    assert set(settings) == {"oracle", *(variant.arm for variant in VARIANTS)}
    assert "weight_ratio = 3\n" in settings["critical:weight_ratio=3"]


def test_an_arm_with_the_guard_is_the_same_policy_under_it() -> None:
    guarded = replace(WIDE, policies=(*WIDE.policies, "dasec+guard"))
    block = blocks(guarded)[0]
    told = tomllib.loads(guarded.plan(block).settings["dasec+guard"])
    assert (told["policy"], told["guard"]["enabled"]) == ("dasec", True)


def cell_of(placed: PlacedCell) -> Cell:
    assert isinstance(placed, Cell)
    return placed


def summaries() -> tuple[Summary[Cell], ...]:
    """Of every arm the same latency, of weight_ratio=3 half of it."""
    cells = WIDE.cells.possible
    done = [
        Done(
            block.cell.name,
            block.repetition,
            tuple(
                run(
                    arm,
                    block.repetition,
                    cell_of(block.cell),
                    0.5 if arm == "critical:weight_ratio=3" else 1.0,
                )
                for arm in block.arms
            ),
        )
        for block in blocks(WIDE)
    ]
    return tuple(one for cell in cells if (one := summarise(cell, done, WIDE.arms)))


def test_sensitivity_has_a_table_for_each_constant_with_its_values_in_order() -> None:
    assert values_of(WIDE)["burst_us"] == ("500", "2000", "8000")
    lines = list(sensitivity(WIDE, summaries()))
    assert [line for line in lines if line.startswith("###")] == [f"### {name}" for name in values_of(WIDE)]
    head, _, *rows = lines[2].splitlines()
    assert head == "| cell | 3 | 20 | usual |"
    assert rows[0].endswith("| 0.500 / 0.500 | 1.000 / 1.000 | 1.000 / 1.000 |")


def test_sensitivity_is_drawn_where_a_constant_was_varied_only(tmp_path: Path) -> None:
    assert draw_sensitivity(WISH, (), tmp_path) == ()
    (name,) = draw_sensitivity(WIDE, summaries(), tmp_path)
    assert (tmp_path / name).stat().st_size > 10_000


def test_the_usual_choice_is_twenty_guests_of_four_runs() -> None:
    usual = counted()
    assert (len(blocks(usual)), len(usual.arms), usual.machine) == (20, 4, Cpus(2))


def test_a_load_that_needs_more_than_the_guest_has_is_refused() -> None:
    with pytest.raises(Refusal, match="memcached is not in guests: leave it out"):
        counted('loads=["memcached"]')


def test_a_record_is_told_before_its_run_and_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = cell_of(WISH.cells.possible[0])
    record = tmp_path / record_name("critical", 1)
    record.write_bytes(b'{"period": 1}\n')
    tell(run("critical", 1, cell, 1.0), Cpus(2), tmp_path)
    tell(run("none", 1, cell, 1.0), Cpus(2), tmp_path)
    first, *runs = capsys.readouterr().out.splitlines()
    name, word = first.removeprefix(RECORD).split()
    assert (name, told_in(word)) == (record.name, b'{"period": 1}\n')
    assert [line.startswith(RUN) for line in runs] == [True, True]
    assert not record.exists()
