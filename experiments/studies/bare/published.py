"""The tables of the kept runs: latency over the plain host's, and what it was worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from dasec.lab.demo.lines import Line, lines_of
from dasec.lab.demo.report import shown
from dasec.lab.kit.ratios import Estimate

from ...plan.oracle import ORACLE
from ...results.effects import percent
from ...results.markdown import markdown_table
from ...results.store import Store
from .guests import kept
from .wish import CRITICAL, Wish

HERE = Path(__file__).resolve().parent
FOLDERS = HERE / "results", HERE / "ratios-results"
ARMS: Mapping[str, str] = {
    CRITICAL: "`critical`",
    f'{CRITICAL}:fairness="giving"': "`giving`",
    "dasec": "`dasec`",
    ORACLE: "oracle",
}
"""Of the daemon, as the page names them."""


def situations() -> Iterator[tuple[Line, ...]]:
    """The lines of each, one for each arm."""
    for folder in FOLDERS:
        store = Store(folder, Wish)
        for name, measured in kept(store.kept(), store.done()):
            yield lines_of(name, measured)


def latency(found: Sequence[Sequence[Line]]) -> str:
    """Mean / p99 over the plain host's."""
    head = ["situation", "busy", "plain: mean, p99 ms", "plain again", *ARMS.values()]
    return markdown_table(head, [list(_row(lines)) for lines in found])


def _row(lines: Sequence[Line]) -> Iterator[str]:
    first, by_arm = lines[0], {line.policy: line for line in lines}
    yield first.situation
    yield percent(first.busy)
    yield f"{first.plain_ms[0]:.2f}, {first.plain_ms[1]:.1f}"
    yield _both(first.noise)
    yield from (_both(by_arm[arm].effect) for arm in ARMS)


def _both(estimates: Sequence[Estimate]) -> str:
    return " / ".join(map(shown, estimates))


def worth(found: Sequence[Sequence[Line]]) -> str:
    """The answer of each arm, and its background work over the plain host's."""
    head = ["situation", *ARMS.values()]
    rows = []
    for lines in found:
        by_arm = {line.policy: f"{line.answer}; {line.background:.2f}" for line in lines}
        rows.append([lines[0].situation, *(by_arm[arm] for arm in ARMS)])
    return markdown_table(head, rows)


def publish() -> None:
    """Print them; `experiments report` draws."""
    found = tuple(situations())
    click.echo(f"{latency(found)}\n\n{worth(found)}")
