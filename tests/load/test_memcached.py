"""The memcached client, against a real server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guests.waiting import PATIENCE_S, wait_for

from ..conftest import refuse
from .tool import Running, Tool, read_samples


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    program = shutil.which("memcached")
    if program is None:
        refuse("needs memcached (Debian: apt-get install memcached)")
        return
    process = subprocess.Popen([program, "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "1"])
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not answers(port):
            assert process.poll() is None, "memcached did not start"
            assert time.monotonic() < deadline, "memcached does not answer"
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    number = free_port()
    with server(number):
        yield str(number)


SHORT = ("memcached", "--seconds", "1", "--warmup", "0.2", "--rate", "1000", "--keys", "500")


@pytest.mark.parametrize(
    "shape",
    [
        [],
        ["--get-ratio", "0", "--connections", "1"],
        ["--get-ratio", "1", "--value-bytes", "1-100000"],
        ["--get-ratio", "0.5", "--value-bytes", "40000", "--key-bytes", "250"],
        ["--rate", "20000", "--connections", "3", "--key-bytes", "3"],
    ],
    ids=" ".join,
)
def test_every_request_is_answered(tool: Tool, port: str, tmp_path: Path, shape: list[str]) -> None:
    path = tmp_path / "samples"
    result = tool.run(*SHORT, "--port", port, "--samples", str(path), *shape)
    samples = read_samples(path)
    counts = result["memcached"]
    assert result["completed"].integer() == result["arrivals_scheduled"].integer() == len(samples) > 0
    assert result["errors"].integer() == 0
    assert counts["gets"].integer() + counts["sets"].integer() == len(samples)
    assert counts["hits"].integer() + counts["misses"].integer() == counts["gets"].integer()
    assert all(sample.queue_ns + sample.service_ns == sample.sojourn_ns for sample in samples)


def test_preloaded_keys_are_hits_and_the_ratio_is_the_asked_one(tool: Tool, port: str) -> None:
    counts = tool.run(*SHORT, "--port", port, "--get-ratio", "0.8")["memcached"]
    assert counts["misses"].integer() == 0
    share = counts["gets"].integer() / (counts["gets"].integer() + counts["sets"].integer())
    assert share == pytest.approx(0.8, abs=0.07)


def connections(port: str) -> int:
    with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S) as asking:
        asking.sendall(b"stats\r\nquit\r\n")
        said = asking.makefile("rb").read().split()
    return int(said[said.index(b"curr_connections") + 1])


def test_the_connections_outlive_the_measured_part(start: Callable[..., Running], port: str) -> None:
    """PostgreSQL's processes end with theirs, and an ended process has no counters to be read."""
    others = connections(port)
    run = start(*SHORT, "--port", port, "--connections", "7")
    assert run.process.stdout is not None
    assert "completed" in run.process.stdout.readline()
    assert connections(port) == others + 7
    run.process.wait(PATIENCE_S)
    wait_for(lambda: connections(port) == others)


def test_waiting_for_a_stopped_server_counts_as_latency(start: Callable[..., Running]) -> None:
    number = free_port()
    with server(number) as process:
        run = start(*SHORT, "--seconds", "2", "--port", str(number))
        process.send_signal(19)  # SIGSTOP, before the first request or soon after
        time.sleep(1.0)
        process.send_signal(18)  # SIGCONT
        result = run.end()
    # Open loop: about 800 of 2000 requests were scheduled meanwhile, not one per connection.
    assert result["completed"].integer() == result["arrivals_scheduled"].integer()
    assert result["latency_ns"]["max"].integer() > 400_000_000
    assert result["latency_ns"]["p90"].integer() > 100_000_000


def test_nobody_listening_is_one_clear_line(tool: Tool) -> None:
    number = free_port()
    done = tool.call(*SHORT, "--port", str(number))
    assert done.returncode == 1
    assert done.stderr == f"dasec-load: memcached 127.0.0.1:{number}: Connection refused\n"


def test_a_server_that_dies_leaves_a_result_and_a_failure(tool: Tool, tmp_path: Path) -> None:
    number = free_port()
    out = tmp_path / "out"
    with server(number) as process:
        run = tool.start(*SHORT, "--seconds", "30", "--port", str(number), "--out", str(out))
        time.sleep(0.8)
        process.kill()
        _, err = run.process.communicate(timeout=PATIENCE_S)
    assert run.process.returncode == 1
    assert err == "dasec-load: memcached closed all connections before the end of the run\n"
    assert out.read_text(encoding="ascii").endswith("}\n")


def test_sigterm_ends_the_client_early(start: Callable[..., Running], port: str) -> None:
    run = start(*SHORT, "--seconds", "50", "--port", port)
    run.work(0.03)  # the warm-up brings 200 requests, of 20 us each
    result = run.terminate()
    assert result["interrupted"].value is True
    assert 0 < result["completed"].integer() < result["arrivals_scheduled"].integer()
