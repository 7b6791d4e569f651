"""Each of the paper's rules alone and all three, at consolidation ratios 1 to 4 (the paper's Figure 13).

    python -m experiments.studies.fig13.run --out DIRECTORY [--ratios 1,2,3,4] [--repetitions 4] [--jobs 2]

From the repository's top folder; in deterministic guests of our patched kernel; needs no root. A cell that
is there already (DIRECTORY/cell-RATIO-REPETITION.json) is not measured again, and the guest's root is not
packed again, so an interrupted run goes on where it was. Then: results.json, table.md and fig13.png.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from guests.built import HostCannotError, patched_image
from guests.qemu import QemuMissingError, major_version

from ...places.counted.batch import measure_all
from ...places.counted.image import Inside, build_id
from ...places.counted.machine import Machine, Run, Task, Told, make_machine
from .cells import ARMS, CORES, CPUS, RATIOS, REPETITIONS, Cell, cells
from .judge import Judged, draw, judge, table

INSIDE = Inside(Path(__file__).resolve().parent, "inside", ("cells",))
FAILED, HOST_CANNOT = 1, 3


def file_of(out: Path, cell: Cell) -> Path:
    """Where the runs of a cell are kept."""
    return out / f"cell-{cell.name}.json"


def measure_missing(machine: Machine, wanted: Sequence[Cell], out: Path, guests: int) -> list[str]:
    """The cells, each kept when it is complete; what failed, in a line each."""
    cell_of = {
        Task(f"ratio {cell.ratio}, repetition {cell.repetition}", cell.name, len(ARMS)): cell
        for cell in wanted
    }

    def keep(task: Task, told: Told) -> None:
        file = file_of(out, cell_of[task])
        unfinished = file.with_suffix(".part")
        unfinished.write_text("".join(json.dumps(run) + "\n" for run in told.runs), encoding="utf-8")
        unfinished.rename(file)

    return measure_all(machine, tuple(cell_of), guests, keep)


def ensure_same_build(out: Path) -> None:
    """Refuses to go on with cells that another daemon, load tool or plan has measured."""
    mark = out / "build"
    if not any(out.glob("cell-*.json")):
        mark.write_text(build_id(INSIDE), encoding="utf-8")
    elif not mark.exists() or mark.read_text(encoding="utf-8") != build_id(INSIDE):
        raise click.UsageError(f"--out: {out} has cells of another build of DASEC: give another directory")


def runs_of(out: Path, cell: Cell) -> list[Run]:
    """What was measured of a cell."""
    return [json.loads(line) for line in file_of(out, cell).read_text(encoding="utf-8").splitlines()]


def conditions(machine: Machine) -> Mapping[str, object]:
    """What a reader must know to do it again."""
    return {
        "kernel": f"patched 6.1, {machine.kernel.parent.name}",
        "qemu_major": major_version(machine.qemu),
        "python": platform.python_version(),
        "service_cores": CORES,
        "mips_per_core": CPUS.mips_each,
        "plan": {key: value for key, value in asdict(Cell(1, 0).plan).items() if key != "scenario"},
    }


def publish(machine: Machine, judged: Sequence[Judged], out: Path) -> None:
    """results.json, the picture and the table."""
    lines = [json.dumps(asdict(run)) for one in judged for run in one.measured.runs]
    verdicts = [
        {
            "ratio": one.ratio,
            "arm": arm,
            "metric": comparison.metric,
            "ratios": [round(value, 4) for value in comparison.ratios],
            "estimate": asdict(comparison.estimate),
            "control_spread": comparison.control_spread,
            "verdict": comparison.verdict,
        }
        for one in judged
        for arm in ARMS[1:]
        for comparison in (one.compared(arm, "mean"), one.compared(arm, "p99"))
    ]
    head = json.dumps({"conditions": conditions(machine), "comparisons": verdicts}, indent=1)
    text = head.removesuffix("\n}") + ',\n "runs": [\n' + ",\n".join(lines) + "\n]}\n"
    (out / "results.json").write_text(text, encoding="utf-8")
    (out / "table.md").write_text(table(judged) + "\n", encoding="utf-8")
    draw(judged, out / "fig13.png")


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--ratios", default=",".join(map(str, RATIOS)), help="Whole numbers, with commas.")
@click.option("--repetitions", type=click.IntRange(min=1), default=REPETITIONS)
@click.option("--jobs", type=click.IntRange(min=1), default=2, help="Guests at a time, a core each.")
def main(out: Path, ratios: str, repetitions: int, jobs: int) -> None:
    """Measure what is missing; publish when nothing is."""
    try:
        chosen = tuple(map(int, ratios.split(",")))
    except ValueError:
        raise click.UsageError(f"--ratios: {ratios!r}: give whole numbers such as 1,2,4") from None
    out.mkdir(parents=True, exist_ok=True)
    every = cells(chosen, repetitions)
    wanted = [cell for cell in every if not file_of(out, cell).exists()]
    ensure_same_build(out)
    click.echo(
        f"{len(every)} guests with {len(ARMS)} runs each, {len(every) - len(wanted)} of them done before"
    )
    try:
        machine = make_machine(out / "guest", patched_image, INSIDE, CPUS)
    except (HostCannotError, QemuMissingError) as error:
        click.echo(str(error), err=True)
        raise SystemExit(HOST_CANNOT) from None
    failures = measure_missing(machine, wanted, out, jobs)
    for failure in failures:
        click.echo(f"fig13: {failure}", err=True)
    if failures:
        raise SystemExit(FAILED)
    judged = [
        judge(ratio, [run for cell in every if cell.ratio == ratio for run in runs_of(out, cell)])
        for ratio in sorted(chosen)
    ]
    publish(machine, judged, out)
    click.echo(table(judged))


if __name__ == "__main__":
    main()
