"""Docker, beside a containerd, as Debian starts them."""

from __future__ import annotations

from collections.abc import Mapping
from subprocess import Popen

from guests.engines.engine import NO_ANNOTATIONS, PROGRAM, with_image
from guests.engines.image import IMAGE
from guests.engines.place import Place
from guests.waiting import wait_for

DOCKERD = (
    *("/usr/sbin/dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none"),
    *("--live-restore", "-H", "unix:///run/docker.sock"),
    *("--containerd", "/run/containerd/containerd.sock"),
)
"""Without a network of its own; containers outlive a daemon that is restarted."""


class Docker:
    """One dockerd and its containers. What Docker 20.10 has no annotations for, it has labels for."""

    def __init__(self, place: Place) -> None:
        self.place = place
        containerd = place.spawn("/usr/bin/containerd")
        wait_for(lambda: containerd.poll() is not None or place.answers("/usr/bin/ctr", "version"))
        self._daemon = self._start_daemon()
        self.say("load", "--input", with_image(place))

    def say(self, *words: str) -> str:
        """What `docker` answers."""
        return self.place.say("/usr/bin/docker", *words)

    def called(self, name: str) -> str:
        """See Engine."""
        return f"docker:{name}"

    def start(self, name: str, annotations: Mapping[str, str] = NO_ANNOTATIONS) -> None:
        """See Engine."""
        labels = [word for key, value in annotations.items() for word in ("--label", f"{key}={value}")]
        self.say("run", "--detach", "--name", name, "--network", "host", *labels, IMAGE, *PROGRAM)

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
        self.say("rm", "--force", name)

    def restart_daemon(self) -> None:
        """As after a crash."""
        self._daemon.kill()
        self._daemon.wait()
        (self.place.root / "run/docker.pid").unlink(missing_ok=True)
        self._daemon = self._start_daemon()

    def _start_daemon(self) -> Popen[bytes]:
        started = self.place.spawn(*DOCKERD)
        wait_for(lambda: started.poll() is not None or self.place.answers("/usr/bin/docker", "version"))
        return started
