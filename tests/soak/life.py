"""One daemon that lives through the whole soak, while its workloads, its policy and its record change."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from dasec.linux import procfs
from dasec.linux.errors import ThreadGone
from dasec.safety.journal.journal import peek
from guests.waiting import PATIENCE_S, wait_for
from tests.chaos.arena import Arena
from tests.chaos.test_chaos import SHUFFLE

from .flat import Sample

SETTINGS = """\
period_ms = 10
policy = "{policy}"
[guard]
enabled = false
[host]
own_cgroups = true
weights = "on"
[bandwidth]
caps = true
burst = true
[record]
max_mib = 1
files = 2
"""
"""A period eight times as short as usual: an hour of it is eight hours of looks."""


OF_ITS_OWN = ("unshare", "--mount", "sh", "-ec", 'mount -t tmpfs none /run; exec "$@"', "sh")
"""Another daemon beside it is refused where both see the same /run."""


class Life:
    """The daemon, from its start to its orderly stop."""

    def __init__(self, arena: Arena, place: Path, chance: random.Random) -> None:
        self._arena, self._chance = arena, chance
        self._config, self._directory, self._record = place / "soak.toml", place / "state", place / "record"
        self._said = place / "said"
        self._inode = 0
        self.reloads = self.rotations = 0
        self._write("dasec", arena.configuration())
        command = [*OF_ITS_OWN, sys.executable, str(SHUFFLE), "run", "--config", str(self._config)]
        command += ["--record", str(self._record), "--directory", str(self._directory)]
        with self._said.open("wb") as said:
            self._daemon = subprocess.Popen(command, stderr=said)
        wait_for(lambda: (self._directory / "status.json").exists() or self._daemon.poll() is not None)
        self._began_s = time.monotonic()

    def reload(self) -> None:
        """A workload more or fewer, perhaps another policy, by SIGHUP. Only the one without children comes
        and goes: what children inherit of one that leaves is a known limit (docs/safety.md)."""
        head, *workloads = self._arena.configuration().split("[[workload]]")
        kept = [one for one in workloads if 'name = "solo"' not in one or self._chance.random() < 0.5]
        text = head + "".join(f"[[workload]]{one}" for one in kept)
        self._write(self._chance.choice(("dasec", "shuffle")), text)
        self._daemon.send_signal(signal.SIGHUP)
        self.reloads += 1

    def sample(self) -> Sample:
        """Memory and descriptors now; AssertionError if it has ended."""
        pid = self._daemon.pid
        self._see_rotation()
        try:
            status = procfs.read_bytes(f"/proc/{pid}/status").decode()
            descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        except (ThreadGone, FileNotFoundError):
            raise AssertionError(f"the daemon has ended: {self.said()}") from None
        memory_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
        return Sample(time.monotonic() - self._began_s, memory_kib, descriptors)

    def end(self) -> list[str]:
        """Stop it in order; what is wrong then."""
        self._daemon.terminate()
        found = [] if self._daemon.wait(PATIENCE_S) == 0 else [f"it ended with {self._daemon.returncode}"]
        found += [line for line in self.said().splitlines() if "Traceback" in line or "not reloaded" in line]
        found += [f"not put back: {ref}" for ref in peek(self._directory)[0].held]
        return [*found, *self._arena.wrong()]

    def kill(self) -> None:
        """However it went."""
        if self._daemon.poll() is None:
            self._daemon.kill()
            self._daemon.wait()

    def said(self) -> str:
        """Its log."""
        return self._said.read_text()

    def _see_rotation(self) -> None:
        inode = self._record.stat().st_ino if self._record.exists() else self._inode
        self.rotations += self._inode not in (0, inode)
        self._inode = inode

    def _write(self, policy: str, workloads: str) -> None:
        """Whole or not at all: the daemon may be reading it."""
        new = self._config.with_suffix(".new")
        new.write_text(SETTINGS.format(policy=policy) + workloads)
        new.replace(self._config)
