"""The daemon's pod as the manifest wants it, by a real containerd, without a cluster.

Its root is an image's, or else an overlay over this machine's own with this Python and this clone. containerd
and its state lie in a directory of the test's; this machine's own, should there be one, is not asked.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from dasec.linux import cgroupfs
from guests.waiting import wait_for

from .manifests import pod_of
from .oci_spec import Node, plain_spec, spec_of

REPOSITORY = Path(__file__).parents[2]
NAME = "dasec-daemon"
GROUP = "/dasec-pod/container"
OTHER_NAME, OTHER_GROUP = "dasec-other", "/dasec-pod/other"
NOBODY = 65534


class Pod:
    """The manifest's containers, and somebody else's, under one containerd."""

    def __init__(
        self,
        place: Path,
        hosts: Mapping[str, Path],
        memory_bytes: int = 0,
        manifest: Mapping[str, Any] | None = None,
        image: Path | None = None,
    ) -> None:
        """`hosts`: what lies behind a hostPath here. `manifest`: a pod's `spec`, if not that of `base`.
        `image`: an archive of one, if not this clone."""
        self._place, self._hosts, self._memory_bytes, self._image = place, dict(hosts), memory_bytes, image
        self._pod = pod_of("base") if manifest is None else manifest
        self._root, self._socket = place / "root", place / "socket"
        self._execs = itertools.count()

    @contextmanager
    def engine(self) -> Iterator[Self]:
        """containerd, and what the containers see as their root."""
        for name in ("root", "upper", "work", "lib", "run"):
            (self._place / name).mkdir()
        (self._place / "config.toml").write_text(
            "version = 2\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n"
        )
        command = ["containerd", "--config", str(self._place / "config.toml"), "--address", str(self._socket)]
        command += ["--root", str(self._place / "lib"), "--state", str(self._place / "run")]
        with (self._place / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            wait_for(lambda: self._ctr("version", check=False).returncode == 0 or process.poll() is not None)
            assert process.poll() is None, (self._place / "log").read_text()
            self._lay_out()
            yield self
        finally:
            for name in (NAME, OTHER_NAME):
                self._ctr("task", "delete", "--force", name, check=False)
                self._ctr("container", "delete", name, check=False)
            if os.path.ismount(self._root):
                _do("umount", str(self._root))
            process.terminate()
            process.wait()
            for mount in cgroupfs.tops():
                for group in (mount + GROUP, mount + OTHER_GROUP, os.path.dirname(mount + GROUP)):
                    cgroupfs.remove_group(group)

    def prepare(self, config: Path) -> None:
        """What runs before the daemon, to its end."""
        for container in self._pod["initContainers"]:
            self._ctr("run", "--rm", "--config", str(self._spec(container, config)), NAME)

    def start(self, config: Path) -> int:
        """The first process of the daemon's container, which is the daemon."""
        (container,) = self._pod["containers"]
        spec, pid = self._spec(container, config), self._place / "pid"
        files = ("--pid-file", str(pid), "--log-uri", _written_to(self._place / "said"))
        self._ctr("run", "--detach", "--config", str(spec), *files, NAME)
        return int(pid.read_text())

    def start_other(self, annotations: Mapping[str, str]) -> int:
        """Somebody else's container beside it, of another user; its first process, which has slept since."""
        spec = plain_spec()
        spec["process"] |= {"args": ["sleep", "1000"], "user": {"uid": NOBODY, "gid": NOBODY}}
        spec["root"] = {"path": str(self._root), "readonly": True}
        spec["linux"]["cgroupsPath"] = OTHER_GROUP
        spec["annotations"] = dict(annotations)
        file, pid = self._place / "other.json", self._place / "other-pid"
        file.write_text(json.dumps(spec))
        given = ("--config", str(file), "--pid-file", str(pid))
        self._ctr("run", "--detach", *given, "--log-uri", f"file://{self._place}/other-said", OTHER_NAME)
        first = int(pid.read_text())
        wait_for(lambda: Path(f"/proc/{first}/comm").read_text() == "sleep\n")  # the runtime's until then
        return first

    def said(self) -> str:
        """By the daemon and its keeper."""
        said = self._place / "said"
        return said.read_text() if said.exists() else ""

    def kill(self, name: str = NAME) -> None:
        """All of it, by the engine."""
        self._ctr("task", "kill", "--all", "--signal", "SIGKILL", name)

    def stop(self) -> None:
        """The daemon is told to end, and has ended; it may have before."""
        self._ctr("task", "kill", "--signal", "SIGTERM", NAME, check=False)
        wait_for(lambda: not any({NAME, "RUNNING"} <= {*row.split()} for row in self._tasks()))

    def remove(self) -> None:
        """The container with everything in it."""
        self._ctr("task", "delete", "--force", NAME)
        self._ctr("container", "delete", NAME)

    def execute(self, *program: str) -> subprocess.CompletedProcess[str]:
        """One more process in it, which may do what the container may; waits for its end, however it ends."""
        return self._ctr(
            "task", "exec", "--exec-id", f"exec-{next(self._execs)}", NAME, *program, check=False
        )

    def is_ready(self) -> bool:
        """What kubelet's readiness probe finds."""
        (container,) = self._pod["containers"]
        return self.execute(*container["readinessProbe"]["exec"]["command"]).returncode == 0

    def status(self) -> dict[str, Any]:
        """What the daemon says of itself; it must be ready."""
        done = self.execute("/usr/bin/dasec", "status", "--json")
        assert done.returncode == 0, done
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def _lay_out(self) -> None:
        if self._image is None:
            # What this machine has there is none of an image's.
            (self._place / "upper/run").mkdir()
            os.setxattr(self._place / "upper/run", "trusted.overlay.opaque", b"y")
            layers = f"lowerdir=/,upperdir={self._place}/upper,workdir={self._place}/work"
            _do("mount", "-t", "overlay", "-o", layers, "overlay", str(self._root))
            program = self._root / "usr/bin/dasec"
            program.unlink(missing_ok=True)
            program.symlink_to(Path(sys.executable).parent / "dasec")
            return
        self._ctr("images", "import", str(self._image))
        (name,) = self._ctr("images", "list", "--quiet").stdout.split()
        self._ctr("images", "mount", "--rw", name, str(self._root))

    def _tasks(self) -> list[str]:
        return self._ctr("task", "list").stdout.splitlines()

    def _ctr(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["ctr", "--address", str(self._socket), *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    def _spec(self, container: Mapping[str, Any], config: Path) -> Path:
        clone = () if self._image else (f"PYTHONPATH={REPOSITORY / '.typing'}",)
        node = Node(self._root, self._hosts, config.parent, clone, self._memory_bytes)
        file = self._place / f"{container['name']}.json"
        file.write_text(json.dumps(spec_of(self._pod, container, GROUP, node)))
        return file


def _written_to(file: Path) -> str:
    """Where a container's words go. containerd's own way of writing a file loses those on standard error if
    standard output ends first, as with a program that fails at once."""
    script = f"exec 5>&-; cat <&3 >>{file} & cat <&4 >>{file} & wait"  # 5: it waits until that is closed
    return f"binary:///bin/sh?-c={quote(script)}"


def _do(*command: str) -> None:
    subprocess.run(command, check=True)
