"""Somebody who collects orphans at once, as the first process of a host is expected to.

QEMU is an orphan by libvirt's making, and libvirt takes it for running until it has been collected: it looks
five times a second. A first process that collects every other second would be all that is measured.
"""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_CHILD_SUBREAPER = 36


def collect_orphans() -> None:
    """Returns in a child of this process; this one stays behind, collects, and ends as the child ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    worker = os.fork()
    if worker == 0:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's reaches the worker, too
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(worker, number))
    while True:
        ended, status = os.wait()
        if ended == worker:
            os._exit(abs(os.waitstatus_to_exitcode(status)))
