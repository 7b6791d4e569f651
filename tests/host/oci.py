"""Real containers by runc, without an engine or a registry: busybox, and a state directory of the test's."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from guests.waiting import wait_for

BURN = "while :; do :; done & while :; do :; done"


class Runc:
    """Containers whose state lies in `state`, as Docker's or containerd's runc has it."""

    def __init__(self, state: Path, scratch: Path) -> None:
        self.state, self._scratch = state, scratch
        self._root = scratch / "root"
        for name in ("bin", "proc", "dev", "sys", "tmp"):
            (self._root / name).mkdir(parents=True)
        shutil.copy(shutil.which("busybox") or "/bin/busybox", self._root / "bin/busybox")
        (self._root / "bin/sh").symlink_to("busybox")
        self._made: set[str] = set()

    def start(self, name: str, annotations: Mapping[str, str] | None = None, program: str = BURN) -> int:
        """Its first process."""
        bundle = self._scratch / f"bundle-{name}"
        bundle.mkdir(exist_ok=True)
        path = bundle / "config.json"
        path.unlink(missing_ok=True)
        subprocess.run(["runc", "spec", "--bundle", str(bundle)], check=True)
        spec = json.loads(path.read_text())
        spec["process"] |= {"terminal": False, "args": ["/bin/sh", "-c", program], "rlimits": []}
        spec["root"] = {"path": str(self._root), "readonly": True}
        spec["annotations"] = dict(annotations or {})
        spec["linux"]["cgroupsPath"] = f"/dasec-oci/{name}"
        path.write_text(json.dumps(spec))
        self._made.add(name)
        (bundle / "pid").unlink(missing_ok=True)
        self._runc("run", "--detach", "--bundle", str(bundle), "--pid-file", str(bundle / "pid"), name)
        return int((bundle / "pid").read_text())

    def execute(self, name: str) -> None:
        """One more process that burns, as `docker exec -d` does."""
        self._runc("exec", "--detach", name, "/bin/sh", "-c", BURN)

    def end(self, name: str) -> None:
        """Kill it and remove it."""
        subprocess.run(self._command("kill", name, "KILL"), capture_output=True, check=False)
        wait_for(
            lambda: (
                subprocess.run(self._command("delete", name), capture_output=True, check=False).returncode
                == 0
                or not (self.state / name).exists()
            )
        )
        self._made.discard(name)

    def close(self) -> None:
        """End all that are left."""
        for name in sorted(self._made):
            self.end(name)
        for mount in Path("/sys/fs/cgroup").glob("*/dasec-oci"):
            mount.rmdir()

    def _runc(self, *words: str) -> None:
        # Not to pipes: the container keeps them open.
        subprocess.run(self._command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def _command(self, *words: str) -> list[str]:
        return ["runc", "--root", str(self.state), *words]
