"""Podman: no daemon, the files of runc or crun where nobody else's are."""

from __future__ import annotations

from collections.abc import Mapping

from guests.engines.engine import NO_ANNOTATIONS, PROGRAM, with_image
from guests.engines.image import IMAGE
from guests.engines.place import Place

PODMAN = ("/usr/bin/podman", "--cgroup-manager", "cgroupfs", "--events-backend", "file")
RUNC, CRUN = "/usr/sbin/runc", "/usr/bin/crun"
"""crun 1.8 refuses cgroup v1 beside v2."""

LIMITS = ("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:2048")
"""Podman's own need CAP_SYS_RESOURCE, which a test machine may lack."""


class Podman:
    """Podman's containers."""

    def __init__(self, place: Place, runtime: str = RUNC) -> None:
        self.place, self._runtime = place, runtime
        self.say("load", "--quiet", "--input", with_image(place))

    def say(self, *words: str) -> str:
        """What `podman` answers."""
        return self.place.say(*PODMAN, "--runtime", self._runtime, *words)

    def called(self, name: str) -> str:
        """See Engine."""
        return f"podman:{name}"

    def start(self, name: str, annotations: Mapping[str, str] = NO_ANNOTATIONS) -> None:
        """See Engine."""
        noted = [word for key, value in annotations.items() for word in ("--annotation", f"{key}={value}")]
        self.say("run", "--detach", "--name", name, "--network", "host", *LIMITS, *noted, IMAGE, *PROGRAM)

    def pid(self, name: str) -> int:
        """See Engine."""
        return int(self.say("inspect", "--format", "{{.State.Pid}}", name))

    def execute(self, name: str) -> None:
        """See Engine."""
        self.say("exec", "--detach", name, *PROGRAM)

    def restart(self, name: str) -> None:
        """See Engine."""
        self.say("restart", "--time", "0", name)

    def remove(self, name: str) -> None:
        """See Engine."""
        self.say("rm", "--force", "--time", "0", name)
