"""Experiment files: what is refused, and which points come out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.drivers.catalogue import DRIVERS
from experiments.plan.file import told_in
from experiments.plan.points import Cell, Gap, arms_of, cells_of, seed_for
from experiments.plan.schema import Experiment, checked
from experiments.run.bench import settings_for
from experiments.run.runner import schedule

FILE = """
title = "t"
policies = ["critical", "oracle"]
ratios = [1, 2, 3]
[[mix]]
name = "caches"
[[mix.workload]]
driver = "memcached"
threads = 2
rate_per_s = 100
[[mix]]
name = "beside"
[[mix.workload]]
driver = "memcached"
threads = 2
count = 1
rate_per_s = 100
[[mix.workload]]
driver = "matrixmul"
threads = 2
"""


def read_file(file: Path) -> Experiment:
    return checked(told_in(file), file, DRIVERS)


def read(tmp_path: Path, text: str) -> Experiment:
    file = tmp_path / "e.toml"
    file.write_text(text, encoding="utf-8")
    return read_file(file)


def refused(tmp_path: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(Refusal) as caught:
        read(tmp_path, text)
    assert caught.value.status is ExitStatus.USAGE
    return tuple(line.removeprefix(f"{tmp_path / 'e.toml'}: ") for line in caught.value.lines)


def cells(experiment: Experiment, cores: int = 2) -> tuple[Cell, ...]:
    return cells_of(experiment, cores, DRIVERS, {}).possible


def test_a_ratio_is_filled_with_whole_instances_of_what_has_no_count(tmp_path: Path) -> None:
    found = {cell.name: len(cell.instances) for cell in cells(read(tmp_path, FILE))}
    assert found == {
        "caches-r1-vm": 1,
        "caches-r2-vm": 2,
        "caches-r3-vm": 3,
        "beside-r2-vm": 2,
        "beside-r3-vm": 3,
    }


def test_a_ratio_without_room_and_a_missing_driver_are_gaps_with_a_reason(tmp_path: Path) -> None:
    found = cells_of(read(tmp_path, FILE), 2, DRIVERS, {"memcached": "memcached: not found"})
    assert found.possible == ()
    assert [(gap.what, gap.why) for gap in found.gaps] == [
        ("caches: memcached", "memcached: not found"),
        ("beside: memcached", "memcached: not found"),
    ]
    (gap,) = cells_of(read(tmp_path, FILE), 2, DRIVERS, {}).gaps
    assert gap.what == "beside at ratio 1"


def test_an_oracle_is_an_arm_only_where_somebody_knows_who_is_critical(tmp_path: Path) -> None:
    experiment = read(tmp_path, FILE.replace('driver = "memcached"', 'driver = "matrixmul"\nname = "m"'))
    assert {arms_of(experiment, cell) for cell in cells(experiment)} == {("none", "none-again", "critical")}
    (first, *_) = cells(read(tmp_path, FILE))
    assert "oracle" in arms_of(experiment, first)
    assert 'critical = ["mc-worker"]' in settings_for(experiment, first, "oracle").replace("'", '"')


def test_guests_run_what_their_image_has_and_nobody_sees_who_is_critical_in_them(tmp_path: Path) -> None:
    experiment = read(tmp_path, FILE.replace("ratios = [1, 2, 3]", 'ratios = [2]\nplaces = ["guest"]'))
    found = cells_of(experiment, 2, DRIVERS, {})
    assert [cell.name for cell in found.possible] == ["caches-r2-vm-guest"]
    assert arms_of(experiment, found.possible[0]) == ("none", "none-again", "critical")
    (gap,) = found.gaps
    assert (gap.what, gap.why) == ("beside in place guest", "matrixmul: not in the guest image (small)")


def test_dockers_containers_are_cells_of_their_own_with_the_groups_that_docker_makes(tmp_path: Path) -> None:
    asked = 'ratios = [2]\nlayouts = ["shared"]\nplaces = ["cgroup", "docker"]'
    groups, docker = (
        cell
        for cell in cells(read(tmp_path, FILE.replace("ratios = [1, 2, 3]", asked)))
        if cell.mix == "caches"
    )
    assert (groups.name, docker.name) == ("caches-r2-shared", "caches-r2-shared-docker")
    assert groups.point == docker.point


def test_arrivals_depend_on_seed_cell_repetition_and_instance_and_on_no_arm(tmp_path: Path) -> None:
    experiment = read(tmp_path, FILE)
    first, second, *_ = cells(experiment)
    other = experiment.model_copy(update={"seed": 2})
    seeds = {seed_for(experiment, first, repetition, index) for repetition in (0, 1) for index in (0, 1)}
    seeds |= {seed_for(experiment, second, 0, 0), seed_for(other, first, 0, 0)}
    assert len(seeds) == 6
    assert seed_for(experiment, first, 0, 0) == seed_for(read(tmp_path, FILE), first, 0, 0)


def test_cells_that_differ_in_their_place_only_have_the_same_arrivals(tmp_path: Path) -> None:
    places = ["cgroup", "container", "guest"]
    experiment = read(tmp_path, FILE.replace("ratios = [1, 2, 3]", f"ratios = [3]\nplaces = {places}"))
    them = [cell for cell in cells(experiment) if cell.mix == "caches"]
    assert [cell.place for cell in them] == places
    assert len({cell.name for cell in them}) == 3
    assert len({seed_for(experiment, cell, 1, 2) for cell in them}) == 1


def test_a_place_that_is_not_there_is_a_gap_before_anything_is_measured(tmp_path: Path) -> None:
    experiment = read(tmp_path, FILE.replace("ratios", 'cores = 2\nplaces = ["cgroup", "guest"]\nratios'))
    found = schedule(experiment, DRIVERS, {"cgroup": None, "guest": "guest image: no cpio"}.get)
    assert Gap("place: guest", "guest image: no cpio") in found.conditions.gaps
    assert {block.cell.place for block in found.blocks} <= {"cgroup"}


def test_all_mistakes_are_told_at_once_each_in_one_line(tmp_path: Path) -> None:
    lines = refused(
        tmp_path,
        """
title = "t"
policies = ["dasek"]
repetitions = 0
ratio = [1]
[needs]
drivers = ["memcache"]
[[mix]]
name = "Upper"
[[mix.workload]]
driver = "memcashed"
threads = 0
""",
    )
    assert {line.partition(":")[0] for line in lines} == {
        *("ratio", "repetitions", "mix[0].name", "mix[0].workload[0].threads"),
        *("policies[0]", "needs.drivers[0]", "mix[0].workload[0].driver"),
    }
    assert "did you mean `dasec`?" in "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("title = ", "not TOML"),
        (FILE + "[[arm]]\nname = 'scx'\nsettings = ''\n", "arm: 'scx' is another arm's name"),
        (
            FILE + "\n[[mix]]\nname = 'caches'\n[[mix.workload]]\ndriver = 'matrixmul'\n",
            "mix: 'caches' is there",
        ),
        (FILE.replace("rate_per_s = 100\n[[mix]]", "[[mix]]"), "mix[0].workload[0].rate_per_s: is missing"),
        (FILE.replace("ratios", 'places = ["docker"]\nratios'), "layouts: 'vm' is not in place 'docker': "),
        (FILE.replace("count = 1", "options = { kees = 3 }"), "mix[1].workload[0].options: "),
        (
            FILE.replace("ratios", '[[arm]]\nname = "x"\nsettings = "policy = 3"\n[_]\nratios'),
            "arm[0]: settings: ",
        ),
    ],
)
def test_what_is_wrong_between_keys_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    assert any(found.startswith(line) for found in refused(tmp_path, text)), refused(tmp_path, text)


@pytest.mark.parametrize("kind", ["paper", "apps"])
def test_every_experiment_file_of_this_repository_is_right(repository: Path, kind: str) -> None:
    files = sorted((repository / "experiments/studies" / kind).rglob("*.toml"))
    assert files
    for file in files:
        assert read_file(file).arms[:2] == ("none", "none-again")


def test_every_figure_has_its_claim_its_state_and_one_command_for_a_larger_host(repository: Path) -> None:
    folders = [
        one
        for one in sorted((repository / "experiments/studies/paper").iterdir())
        if one.is_dir() and one.name != "__pycache__"
    ]
    assert len(folders) == 11
    for folder in folders:
        page = " ".join((folder / "README.md").read_text(encoding="utf-8").replace("\n> ", " ").split())
        assert f"run experiments/studies/paper/{folder.name}/paper.toml" in page
        assert "**Our result:**" in page
        for name in ("paper", "here"):
            claim = " ".join(read_file(folder / f"{name}.toml").claim.split())
            assert claim
            assert claim in page
