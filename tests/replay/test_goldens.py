"""Records of real runs, kept: whoever changes a decision sees it here.

A deliberate change of a rule makes a golden wrong; record it anew as README.md beside this file says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.record.checksum import unseal
from dasec.record.entries import Decoder
from dasec.record.replay import replay

GOLDENS = sorted(Path(__file__).parent.glob("*.jsonl"))


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda path: path.stem)
def test_every_decision_of_a_golden_comes_out_the_same(golden: Path) -> None:
    verdict = replay(golden)
    assert verdict.periods >= 20
    assert verdict.changes > 0
    assert verdict.notices == ()


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda path: path.stem)
def test_a_golden_shows_more_than_sleepers(golden: Path) -> None:
    decoder, chain = Decoder(), 0
    rules: set[str] = set()
    for number, line in enumerate(golden.read_bytes().splitlines()):
        opened = unseal(line, chain)
        assert opened is not None
        body, chain = opened
        if number:
            _, recorded = decoder.period(body)
            rules.update(str(row[4]) for row in recorded.get("results", ()))
    assert {rule.split(".")[0] for rule in rules} >= {"tsa", "rla"}


def test_there_are_goldens() -> None:
    assert GOLDENS
