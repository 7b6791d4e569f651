"""What all figures with nothing but memcached say together. Pure but for reading their CSV files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import estimate, geometric_mean

from ...results.effects import effect
from ...results.markdown import markdown_table
from .here import Line, disturbed, kept_runs, lines

METRICS = ("mean", "p50", "p99")
LEAST_REPETITIONS = 12
"""An arm of one figure alone has too few to say more than that figure does."""

WORKLOAD = "memcached"
POLICIES, TAIL = ("critical", "dasec"), "p99"
"""What the overview says in words."""

Block = Mapping[str, Sequence[Line]]
"""A repetition of a cell: by arm the lines of its instances."""


def pooled(blocks: Sequence[Block]) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Of each arm, by metric, the ratios to both plain runs of its repetition, where it has both."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in blocks:
        if not {NONE, CONTROL} <= block.keys():
            continue
        for metric in METRICS:
            told = {arm: _latency(instances, metric) for arm, instances in block.items()}
            plain = geometric_mean([told[NONE], told[CONTROL]])
            for arm, value in told.items():
                found[arm][metric].append(value / plain)
    return {arm: found[arm] for arm in sorted(found) if len(found[arm][METRICS[0]]) >= LEAST_REPETITIONS}


def all_blocks() -> tuple[Block, ...]:
    """All repetitions of all figures in groups of ours."""
    kept = (one for one in kept_runs() if one.endswith("/here"))
    return tuple(block for one in kept for block in _blocks(lines(one, "runs")))


def undisturbed(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Without the runs in which something else was at work."""
    return tuple({arm: run for arm, run in block.items() if not disturbed(run[0])} for block in blocks)


def pooled_table() -> str:
    """With intervals."""
    rows = [
        [arm, *(effect(estimate(each[metric])) for metric in METRICS), str(len(each[METRICS[0]]))]
        for arm, each in pooled(all_blocks()).items()
    ]
    return markdown_table(["over both plain runs", *METRICS, "repetitions"], rows)


def without_disturbed() -> str:
    """What the tail is without such runs, as the overview says it."""
    blocks = all_blocks()
    rest = undisturbed(blocks)
    number = sum(map(len, blocks)) - sum(map(len, rest))
    before, after = (
        [f"{geometric_mean(pooled(them)[arm][TAIL]):.2f}" for arm in POLICIES] for them in (blocks, rest)
    )
    told = " and ".join(f"{ratio} with `{arm}`" for arm, ratio in zip(POLICIES, after, strict=True))
    return (
        f"Without the {number} runs in which something else used more than a fifth of a core {TAIL} is {told}"
        f" instead of {' and '.join(before)}."
    )


def _blocks(runs: Sequence[Line]) -> Iterator[Block]:
    by_cell: dict[str, list[Line]] = defaultdict(list)
    for one in runs:
        by_cell[one["cell"]].append(one)
    for mine in by_cell.values():
        if {one["workload"] for one in mine} != {WORKLOAD}:
            continue
        blocks: dict[str, dict[str, list[Line]]] = {}
        for one in mine:
            blocks.setdefault(one["repetition"], {}).setdefault(one["arm"], []).append(one)
        yield from blocks.values()


def _latency(instances: Sequence[Line], metric: str) -> float:
    return geometric_mean([float(one[f"{metric}_ms"]) for one in instances])
