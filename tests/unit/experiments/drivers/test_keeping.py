"""What servers write when they keep house, as they write it."""

from __future__ import annotations

import pytest

from experiments.drivers import postgres, rocksdb
from experiments.drivers.keeping import Tasks, undone

# RocksDB 7.8.3
STARTED = 'EVENT_LOG_v1 {"time_micros": 1795782838, "job": 5, "event": "flush_started", "num_memtables": 1}\n'
FLUSHED = (
    'EVENT_LOG_v1 {"time_micros": 1795782839, "job": 5, "event": "flush_finished", "output_compression":'
    ' "NoCompression", "lsm_state": [1, 36, 0, 0, 0, 0, 0], "immutable_memtables": 0}\n'
)
MOVED = 'EVENT_LOG_v1 {"time_micros": 1795782838, "job": 3, "event": "trivial_move", "files": 1}\n'
COMPACTED = (
    'EVENT_LOG_v1 {"time_micros": 1795782841, "job": 7, "event": "compaction_finished",'
    ' "compaction_time_micros": 24750, "num_output_files": 36}\n'
)
# PostgreSQL 15
CHECKPOINT = "LOG:  checkpoint starting: wal\n"
BY_TIME = "LOG:  checkpoint starting: time\n"
ANALYZED = 'LOG:  automatic analyze of table "postgres.public.dasec"\n'


@pytest.mark.parametrize(
    ("tasks", "said", "missed"),
    [
        (rocksdb.TASKS, FLUSHED + COMPACTED, ()),
        (rocksdb.TASKS, FLUSHED + MOVED, ("compaction",)),
        (rocksdb.TASKS, STARTED + COMPACTED, ("flush",)),
        (rocksdb.TASKS, "", ("flush", "compaction")),
        (postgres.TASKS, CHECKPOINT + ANALYZED, ()),
        (postgres.TASKS, BY_TIME + ANALYZED, ("checkpoint",)),
        (postgres.TASKS, CHECKPOINT, ("automatic vacuum or analyze",)),
        ({}, "", ()),
    ],
)
def test_what_was_not_done_is_named(tasks: Tasks, said: str, missed: tuple[str, ...]) -> None:
    assert undone(tasks, said) == missed
