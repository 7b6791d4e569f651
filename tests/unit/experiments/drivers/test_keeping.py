"""What servers write when they keep house, as they write it."""

from __future__ import annotations

import pytest

from experiments.drivers import postgres
from experiments.drivers.keeping import Tasks, undone

# PostgreSQL 15
CHECKPOINT = "LOG:  checkpoint starting: wal\n"
BY_TIME = "LOG:  checkpoint starting: time\n"
ANALYZED = 'LOG:  automatic analyze of table "postgres.public.dasec"\n'


@pytest.mark.parametrize(
    ("tasks", "said", "missed"),
    [
        (postgres.TASKS, CHECKPOINT + ANALYZED, ()),
        (postgres.TASKS, BY_TIME + ANALYZED, ("checkpoint",)),
        (postgres.TASKS, CHECKPOINT, ("automatic vacuum or analyze",)),
        ({}, "", ()),
    ],
)
def test_what_was_not_done_is_named(tasks: Tasks, said: str, missed: tuple[str, ...]) -> None:
    assert undone(tasks, said) == missed
