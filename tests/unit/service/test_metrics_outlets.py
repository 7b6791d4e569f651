"""Where the metrics go: a port, a textfile, nowhere without either."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.config.config import ConfigError, check
from dasec.config.metrics import Outlets
from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.process import free_port
from dasec.metrics.exporter import Exporter

from .command import dasec
from .metrics import LOOPBACK, exporter
from .periods import STATE, busy_history


def scraped(port: int, path: str = "/metrics") -> bytes:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=30) as answer:
        return bytes(answer.read())


@contextmanager
def listening() -> Iterator[Exporter]:
    told = exporter(free_port())
    try:
        yield told
    finally:
        told.close()


def test_a_scrape_gets_the_text_that_was_rendered_last() -> None:
    with listening() as told:
        for entry in busy_history(3):
            told.write(entry, STATE)
            assert told.port is not None
            assert scraped(told.port) == told.text


def test_another_path_is_told_the_right_one() -> None:
    with listening() as told:
        assert told.port is not None
        with pytest.raises(urllib.error.HTTPError) as caught:
            scraped(told.port, "/")
        assert caught.value.code == 404
        assert b"/metrics" in caught.value.read()


def test_a_client_that_says_nothing_does_not_keep_the_daemon_from_ending() -> None:
    with listening() as told, socket.create_connection((LOOPBACK, told.port or 0)):
        pass


def test_the_thread_that_serves_takes_no_signal() -> None:
    with listening():
        (thread,) = [one for one in threading.enumerate() if one.name == "metrics"]
        lines = Path(f"/proc/self/task/{thread.native_id}/status").read_text().splitlines()
        (blocked,) = [int(line.split()[1], 16) for line in lines if line.startswith("SigBlk")]
        assert all(blocked >> (stopper - 1) & 1 for stopper in (signal.SIGTERM, signal.SIGINT))


def test_an_address_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            Refusal, match=f"metrics: 127.0.0.1 port {port}: Address already in use: give another"
        ):
            exporter(port)


def test_the_textfile_is_replaced_whole_and_leaves_with_the_daemon(tmp_path: Path) -> None:
    told = exporter(textfile=tmp_path / "dasec.prom")
    mask = os.umask(0o077)
    try:
        told.write(busy_history(1)[0], STATE)
    finally:
        os.umask(mask)
    assert (tmp_path / "dasec.prom").read_bytes() == told.text
    assert (tmp_path / "dasec.prom").stat().st_mode & 0o777 == 0o644, "node_exporter is another user"
    told.close()
    assert list(tmp_path.iterdir()) == []


def test_the_textfile_of_a_killed_daemon_is_removed_when_its_knobs_are_put_back(tmp_path: Path) -> None:
    run, textfile = tmp_path / "run", tmp_path / "dasec.prom"
    run.mkdir()
    told = exporter(textfile=textfile, directory=run)
    for entry in busy_history(2):
        told.write(entry, STATE)
    assert textfile.exists()
    assert dasec("restore", "--directory", run).status == ExitStatus.DONE
    assert not textfile.exists()
    assert dasec("restore", "--directory", run).status == ExitStatus.DONE


def test_a_textfile_that_ends_with_its_daemon_leaves_no_note_of_it(tmp_path: Path) -> None:
    told = exporter(textfile=tmp_path / "dasec.prom", directory=tmp_path)
    for entry in busy_history(2):
        told.write(entry, STATE)
    told.close()
    assert list(tmp_path.iterdir()) == []


def test_a_textfile_that_cannot_be_written_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = exporter(textfile=tmp_path / "missing" / "dasec.prom")
    for entry in busy_history(3):
        told.write(entry, STATE)
    assert caplog.messages == [
        f"metrics {tmp_path}/missing/dasec.prom: No such file or directory: the textfile is not written"
    ]


ONE = '[[workload]]\nname = "a"\npids = [1]\n'


def test_metrics_are_off_by_default_and_local_where_only_a_port_is_given() -> None:
    assert check(tomllib.loads(ONE), "f").metrics.outlets() is None
    told = check(tomllib.loads(f"[metrics]\nport = 9753\n{ONE}"), "f").metrics.outlets()
    assert told == Outlets(LOOPBACK, 9753, None, 5)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("interval_s = 5", "f: metrics: goes nowhere: give a `port` or a `textfile`"),
        (
            'address = "localhost"\nport = 1',
            "'localhost' does not appear to be an IPv4 or IPv6 address: give an IP",
        ),
        ("port = 0", "f: metrics.port: is 0, which is wrong"),
        ('textfile = "dasec.prom"', "'dasec.prom' is not an absolute path that ends in .prom"),
        ('textfile = "/x/dasec.txt"', "'/x/dasec.txt' is not an absolute path that ends in .prom"),
        ("ports = 1", "f: metrics.ports: unknown key: did you mean `port`?"),
    ],
)
def test_a_wrong_setting_is_one_line(line: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        check(tomllib.loads(f"[metrics]\n{line}\n{ONE}"), "f")
