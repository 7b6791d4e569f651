"""Runs dasec-load and reads what it writes."""

from __future__ import annotations

import json
import signal
import subprocess
from array import array
from dataclasses import dataclass
from pathlib import Path

from guests.waiting import PATIENCE_S, wait_for


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value whose type each access states."""

    value: object

    def __getitem__(self, key: str) -> Node:
        assert isinstance(self.value, dict), f"{self.value!r} is no object"
        return Node(self.value[key])

    def names(self) -> list[str]:
        assert isinstance(self.value, dict)
        return list(self.value)

    def number(self) -> float:
        assert isinstance(self.value, int | float)
        return self.value

    def integer(self) -> int:
        assert isinstance(self.value, int)
        return self.value

    def integers(self) -> list[int]:
        assert isinstance(self.value, list)
        return [Node(item).integer() for item in self.value]


@dataclass(frozen=True, slots=True)
class Sample:
    """One request of the samples file."""

    queue_ns: int
    service_ns: int
    sojourn_ns: int


def read_uint64(path: Path) -> list[int]:
    values = array("Q")
    values.frombytes(path.read_bytes())
    return values.tolist()


def read_samples(path: Path) -> list[Sample]:
    values = read_uint64(path)
    assert len(values) % 3 == 0
    return [Sample(*values[i : i + 3]) for i in range(0, len(values), 3)]


class Running:
    """A run whose first line has been read."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.ready = Node(json.loads(process.stdout.readline()))

    def work(self, seconds: float) -> None:
        """Until all its threads together have been on a core for so long, from now on."""
        folder = Path(f"/proc/{self.ready['pid'].integer()}/task")

        def on_cpu_ns() -> int:
            return sum(int((task / "schedstat").read_text().split()[0]) for task in folder.iterdir())

        begin_ns = on_cpu_ns()
        wait_for(lambda: on_cpu_ns() - begin_ns > seconds * 1e9)

    def end(self) -> Node:
        """Waits for the result."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, err
        return Node(json.loads(out))

    def terminate(self) -> Node:
        """Ends it by SIGTERM and returns the result all the same."""
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def kill(self) -> None:
        """Leaves nothing behind; harmless after the end."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Tool:
    """The built program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs to the end, whatever that is."""
        return subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def run(self, *arguments: str) -> Node:
        """Runs to a good end and returns the result, the last line."""
        done = self.call(*arguments)
        assert done.returncode == 0, done.stderr
        return Node(json.loads(done.stdout.splitlines()[-1]))

    def start(self, *arguments: str) -> Running:
        """Returns once the ready line is there."""
        return Running(
            subprocess.Popen(
                [self.path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
