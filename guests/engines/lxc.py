"""LXC: no daemon, a monitor for each container."""

from __future__ import annotations

from collections.abc import Mapping

from guests.engines.engine import NO_ANNOTATIONS, PROGRAM, lay_out
from guests.engines.place import Place

CONFIG = """lxc.uts.name = {name}
lxc.rootfs.path = dir:/var/lib/lxc/{name}/rootfs
lxc.net.0.type = none
lxc.apparmor.profile = unconfined
lxc.init.cmd = {program}
lxc.mount.auto = proc:rw sys:ro
"""
"""The network is the place's, which has nothing in it. No template: busybox' asks for an address."""


class Lxc:
    """LXC's containers. It knows no annotations."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def called(self, name: str) -> str:
        """See Engine."""
        return f"lxc:{name}"

    def start(self, name: str, annotations: Mapping[str, str] = NO_ANNOTATIONS) -> None:
        """See Engine."""
        assert not annotations, "LXC has none"
        home = self.place.root / "var/lib/lxc" / name
        lay_out(home / "rootfs")
        (home / "config").write_text(CONFIG.format(name=name, program=" ".join(PROGRAM)))
        self._start(name)

    def pid(self, name: str) -> int:
        """See Engine."""
        return int(self.place.say("lxc-info", "--name", name, "--pid", "--no-humanize"))

    def execute(self, name: str) -> None:
        """See Engine."""
        self.place.spawn("lxc-attach", "--name", name, "--", *PROGRAM)

    def restart(self, name: str) -> None:
        """See Engine."""
        self.place.say("lxc-stop", "--kill", "--name", name)
        self._start(name)

    def remove(self, name: str) -> None:
        """See Engine."""
        self.place.say("lxc-destroy", "--force", "--name", name)

    def _start(self, name: str) -> None:
        self.place.say("lxc-start", "--name", name, "--daemon")
