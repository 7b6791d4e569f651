"""The first page and the findings have of each server what its kept runs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dasec.lab.kit.ratios import Estimate
from experiments.results.analysis import JUDGED
from experiments.studies.servers import curve, sixteen
from experiments.studies.servers.published import RESULTS, Cell, cells, curves
from experiments.studies.servers.sixteen import Host

TOP = Path(__file__).resolve().parents[3]
PAGE = (TOP / "docs/findings.md").read_text(encoding="utf-8").partition("## Debian's own servers")[2]
KEPT = {cell.file: cell for cell in cells()}
(SPHINX,) = cells(RESULTS / "long")

FIRST_PAGE = {
    "memcached": KEPT["memcached-busy"],
    "Redis, saving": KEPT["redis-busy"],
    "nginx": KEPT["nginx-busy"],
    "PostgreSQL": KEPT["postgres-busy"],
    "TailBench's masstree": KEPT["masstree-busy"],
    "Go, 77 % busy": KEPT["go-busy"],
    "TailBench's sphinx": SPHINX,
}

FINDINGS = (
    "memcached-busy",
    "nginx-busy",
    "redis-busy",
    "redis-shared",
    "go-full",
    "go-busy",
    "java-busy",
    "postgres-busy",
    "rocksdb-busy",
    "gluoncv-busy",
    "masstree-busy",
    "silo-busy",
    "img-dnn-busy",
    "xapian-busy",
)
"""In the order of the table."""


@pytest.mark.parametrize("host", FIRST_PAGE)
def test_the_first_page_has_these_ratios(host: str) -> None:
    rows = [row.strip("| ").split(" | ") for row in (TOP / "README.md").read_text().splitlines()]
    ((word, said, mean, p99, _),) = (row for row in rows if len(row) == 5 and row[1].startswith(f"{host} ("))
    cell = FIRST_PAGE[host]
    assert word.strip("*") == cell.word("critical")
    assert [mean, p99] == [f"{cell.ratio('critical', of).ratio:.2f}" for of in JUDGED]
    assert re.findall(r"\d\.\d\d", said) == [f"{cell.ratio('scx', of).ratio:.2f}" for of in JUDGED]


HOSTS = {host.name: host for host in sixteen.hosts()}
AGAIN = {host.name: host for host in sixteen.hosts(sixteen.PRESENT)}
NAMES = {
    "gluoncv": "GluonCV",
    "go": "Go",
    "java": "Java",
    "masstree": "TailBench's masstree",
    "memcached": "memcached",
    "nginx": "nginx",
    "postgres": "PostgreSQL",
    "redis": "Redis",
    "rocksdb": "RocksDB",
}
OTHERS = [
    (cell, arms)
    for folder, arms in (("patched", ("critical", "oracle")), ("half", ("critical", "oracle", "scx")))
    for cell in cells(RESULTS / folder)
]


def rows_of(page: str, columns: int) -> dict[str, list[str]]:
    """By the first word of each row of its tables with so many columns, the rest."""
    rows = [row.strip("| ").split(" | ") for row in page.splitlines()]
    return {re.split(r",| \(", row[0])[0]: row[1:] for row in rows if len(row) == columns}


def section(beginning: str) -> str:
    """From these bold words on to the next."""
    return PAGE.partition(f"**{beginning}")[2].partition("\n**")[0]


def over_plain(cell: Cell, arm: str) -> str:
    """Mean / p99, as the findings have it."""
    found = " / ".join(f"{cell.ratio(arm, of).ratio:.2f}".removeprefix("0") for of in JUDGED)
    return found if cell.word(arm) == "gain" else f"{found} ({cell.word(arm)})"


def scheduled(host: Host) -> Cell:
    """Whose runs the findings have of our own scheduler."""
    return AGAIN.get(host.name, host).full


@pytest.mark.parametrize("name", HOSTS)
def test_the_findings_have_of_sixteen_vms_what_was_kept(name: str) -> None:
    host, row = HOSTS[name], rows_of(section("On sixteen CPUs"), 5)[NAMES[name]]
    arms = [(host.full, "critical"), (host.full, "oracle"), (scheduled(host), "scx")]
    times = " / ".join(f"{host.times_alone('none', of):.1f}" for of in JUDGED)
    assert [cell.partition(" by ")[0] for cell in row] == [times, *(over_plain(*arm) for arm in arms)]


@pytest.mark.parametrize(("cell", "arms"), OTHERS, ids=lambda one: one.file if isinstance(one, Cell) else "")
def test_the_findings_have_of_6_1_and_of_half_busy_hosts_what_was_kept(
    cell: Cell, arms: tuple[str, ...]
) -> None:
    page = section("On Linux 6.1" if len(arms) == 2 else "Half busy")
    name = NAMES[cell.file.partition("-")[0]]
    assert rows_of(page, 1 + len(arms))[name] == [over_plain(cell, arm) for arm in arms]


@pytest.mark.parametrize("name", curves())
def test_the_findings_have_how_many_vms_are_held(name: str) -> None:
    host = curves()[name]
    held = [
        [curve.most_vms(host, arm, limit_ms) for limit_ms in curve.limits_ms(host)]
        for arm in ("none", "critical", "scx")
    ]
    assert rows_of(section("So many VMs"), 4)[NAMES[name]] == [f"{few} ({many})" for few, many in held]


MEAN, P99, TIMES_ALONE = 0.54, 0.48, 2
"""What was aimed at, over the plain kernel, where its p99 is so many times that of one VM alone."""


def on_sixteen(name: str) -> tuple[Cell, Cell, float]:
    """The host, whose runs count for our own scheduler, and how many times the p99 of one VM alone the plain
    kernel has there."""
    host = HOSTS[name]
    return host.full, scheduled(host), host.times_alone("none", "p99")


def on_eight(name: str) -> tuple[Cell, Cell, float]:
    """The same of eight VMs on eight CPUs."""
    one, *others = curves()[name]
    (eight,) = (point for point in others if point.vms == 8)
    return KEPT[f"{name}-busy"], KEPT[f"{name}-busy"], eight.p99_ms("none") / one.p99_ms("none")


AIMED_AT = {
    **{name: ("16", *on_sixteen(name)) for name in ("memcached", "redis", "postgres", "rocksdb", "java")},
    **{name: ("8", *on_eight(name)) for name in ("nginx", "masstree")},
}


@pytest.mark.parametrize("name", AIMED_AT)
def test_what_was_aimed_at_is_reached_on_our_own_scheduler_and_missed_by_critical(name: str) -> None:
    cpus, host, ours, times = AIMED_AT[name]
    assert times > TIMES_ALONE
    assert ours.ratio("scx", "mean").ratio < MEAN
    assert ours.ratio("scx", "p99").ratio < P99
    assert host.ratio("critical", "mean").ratio > MEAN
    missed, reached = f"missed: {over_plain(host, 'critical')}", f"reached: {over_plain(ours, 'scx')}"
    row = rows_of(section("What was aimed at"), 5)[NAMES[name]]
    assert row == [cpus, f"{times:.0f} times", missed, reached]


def told(word: str, found: Estimate) -> str:
    """As the findings have it."""
    ratio, low, high = (f"{one:.2f}".lstrip("0") for one in (found.ratio, found.low, found.high))
    return f"{word}: {ratio} [{low}, {high}]"


def test_the_findings_have_these_words_means_and_intervals() -> None:
    rows = [row.strip("| ").split(" | ")[1:] for row in PAGE.partition("|---")[2].splitlines()[1:]]
    for row, name in zip(rows[: len(FINDINGS)], FINDINGS, strict=True):
        cell = KEPT[name]
        arms = ("critical", "oracle", "scx")
        assert row == [told(cell.word(arm), cell.ratio(arm, "mean")) for arm in arms], name
    assert set(FINDINGS) == set(KEPT)
