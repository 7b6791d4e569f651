"""CPUs reserved by the whole daemon, on real threads: kept, refused, given back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.linux import procfs
from guests.waiting import wait_for

from .running import Running, burner

pytestmark = pytest.mark.host

WHOLE = 'cpu = "whole"\ncpus = 1\n'


def masks(pid: int) -> set[frozenset[int]]:
    return {frozenset(os.sched_getaffinity(tid)) for tid in procfs.thread_ids(pid)}


def configured(place: Path, *workloads: tuple[str, int, str]) -> Path:
    file = place / "dasec.toml"
    tables = (f'[[workload]]\nname = "{name}"\npids = [{pid}]\n{more}' for name, pid, more in workloads)
    file.write_text('policy = "none"\n' + "".join(tables))
    return file


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_a_whole_cpu_is_of_one_workload_until_the_daemon_ends(
    tmp_path: Path, everywhere: frozenset[int], killed: bool
) -> None:
    with burner(3) as web, burner(3) as batch:
        config = configured(tmp_path, ("web", web.pid, WHOLE), ("batch", batch.pid, ""))
        with Running(tmp_path, config) as daemon:
            wait_for(lambda: len(masks(batch.pid)) == 1 and masks(batch.pid) != {everywhere})
            wait_for(lambda: daemon.status()["cores"] != [])
            ((own,), (rest,)) = masks(web.pid), masks(batch.pid)
            assert len(own) == 1
            assert rest == everywhere - own
            status = {each["name"]: each["reserved"] for each in daemon.status()["workloads"]}
            assert status == {"web": f"whole {min(own)}", "batch": ""}
            if not killed:
                daemon.stop()
        wait_for(lambda: masks(web.pid) == masks(batch.pid) == {everywhere})


def test_the_others_get_the_cpu_back_when_its_workload_has_ended(
    tmp_path: Path, everywhere: frozenset[int]
) -> None:
    with burner(2) as batch, burner(2) as web:
        config = configured(tmp_path, ("web", web.pid, WHOLE), ("batch", batch.pid, ""))
        with Running(tmp_path, config) as daemon:
            wait_for(lambda: masks(batch.pid) not in ({everywhere}, set()) and len(masks(batch.pid)) == 1)
            web.kill()
            web.wait()
            wait_for(lambda: masks(batch.pid) == {everywhere})
            daemon.stop()


def test_what_does_not_fit_is_said_once_and_nothing_of_it_is_done(
    tmp_path: Path, everywhere: frozenset[int]
) -> None:
    with burner(2) as db:
        all_of_it = f'cpu = "whole"\ncpus = {len(everywhere)}\n'
        with Running(tmp_path, configured(tmp_path, ("db", db.pid, all_of_it))) as daemon:
            daemon.wait_to_say("workload db: reservation of CPUs is not kept: wants")
            wait_for(lambda: daemon.status()["troubles"] != [])
            assert masks(db.pid) == {everywhere}
            daemon.stop()
            assert daemon.said("is not kept") == 1
