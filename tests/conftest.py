"""What the markers mean, the parts of the suite, the order of a run, and its command line.

A test that cannot run here is skipped with the reason, so that anybody can run the suite.
Under DASEC_CI=1 nothing is missing by intention: there the same test fails with the reason.

The suite has four parts: tools/run-tests runs some of them, each in a pytest of its own (`--part`).
The guests compute for minutes, each on one core: tests/ahead.py begins them at once, and the tests are run in
four stages, so that the next core is not idle meanwhile and those that time something have the machine alone.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import tempfile
from enum import IntEnum, StrEnum
from pathlib import Path

import pytest

from guests import counted, libvirtd, throw_away
from guests.engines import packages
from tests.ahead import Ahead
from tests.packaging import debian

IN_CI = os.environ.get("DASEC_CI") == "1"

if os.environ.get("DASEC_GUEST") != "1":  # which tests no property, and needs 2 s for the import
    importlib.import_module("tests.examples")

REPOSITORY = Path(__file__).resolve().parent.parent


AHEAD = pytest.StashKey[Ahead]()

TO_BUILD = pytest.mark.timeout(1800)
"""Where the cache has no kernel, the one that it needs is built first, perhaps another one before that."""

INTO_C = pytest.mark.timeout(method="thread")
"""Whoever waits inside libvirt's library for a libvirtd that says nothing hears no signal: the run ends there
and says where it was, before whoever started it loses patience."""


class Stage(IntEnum):
    """When a test is run. Within a stage the order is the one that it was before."""

    CHEAP = 0
    HOST = 1
    """One at a time as ever: they change what there is one of."""
    GUESTS = 2
    """Those that read what a guest said, or start some."""
    ALONE = 3


def stage(item: pytest.Item) -> Stage:
    """The last one that a marker of it asks for."""
    asked = {"alone": Stage.ALONE, "timing": Stage.ALONE, "vm": Stage.GUESTS, "host": Stage.HOST}
    return next((of for marker, of in asked.items() if item.get_closest_marker(marker)), Stage.CHEAP)


class Part(StrEnum):
    """Which pytest of a whole run a test belongs to. Each test has one."""

    CHEAP = "cheap"
    """Shares nothing with others and judges no time: several at once (pytest-xdist), beside `host`."""
    HOST = "host"
    """One at a time, without QEMU; holds on a machine that is busy with the cheap ones."""
    ALONE = "alone"
    """Times something, without QEMU: when nothing else runs."""
    GUESTS = "guests"
    """Starts QEMU, or needs a kernel or an image that we build."""


def part(item: pytest.Item) -> Part:
    """By its markers."""
    if item.get_closest_marker("vm") or item.get_closest_marker("libvirtd"):
        return Part.GUESTS
    return {Stage.CHEAP: Part.CHEAP, Stage.HOST: Part.HOST}.get(stage(item), Part.ALONE)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[AHEAD] = Ahead(Path(tempfile.mkdtemp(prefix="dasec-ahead-")))


@pytest.hookimpl(trylast=True)  # after pytest-randomly has shuffled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=stage)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            if item.get_closest_marker("libvirtd"):
                item.add_marker(INTO_C)
            elif item.get_closest_marker("vm"):
                item.add_marker(TO_BUILD)
    if (asked := config.getoption("--part")) is not None:
        config.hook.pytest_deselected(items=[item for item in items if part(item) != asked])
        items[:] = [item for item in items if part(item) == asked]


def pytest_collection_finish(session: pytest.Session) -> None:
    """The last errand first: the tests begin at the other end."""
    config = session.config
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    run = [
        item
        for item in session.items
        if config.getoption("--run-slow") or not item.get_closest_marker("slow")
    ]
    wanted = [one for item in run for mark in item.iter_markers("ahead") for one in mark.args]
    if wanted and why_not_vm() is None:
        config.stash[AHEAD].start(tuple(dict.fromkeys(reversed(wanted))))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if took := config.stash[AHEAD].took():
        terminalreporter.section("what took minutes")
        for line in took:
            terminalreporter.write(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[AHEAD].close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run the tests marked slow, too")
    parser.addoption("--part", choices=[str(one) for one in Part], help="only this part of the suite")


def why_not_host() -> str | None:
    """Why this machine cannot run tests that act on its own kernel, or None.

    In a guest (DASEC_GUEST=1) whoever started it chose kernel and tests to fit each other.
    """
    if os.geteuid() != 0:
        return "needs root"
    try:
        own = Path("/proc/self/sched").read_text(encoding="ascii")
    except OSError as error:
        return f"needs /proc/self/sched: {error.strerror}"
    if "se.slice" not in own and os.environ.get("DASEC_GUEST") != "1":
        return "needs a kernel with EEVDF slices (6.12 or newer)"
    return None


def why_not_vm() -> str | None:
    """Why this machine cannot start a guest, or None."""
    missing = dict.fromkeys((*throw_away.missing_tools(), *counted.missing_tools()))
    return f"needs {', '.join(missing)}" if missing else None


def why_not_libvirt() -> str | None:
    """Why libvirt's Python binding cannot be used, or None."""
    if importlib.util.find_spec("libvirt") is None:
        return "needs libvirt-python (tools/setup libvirt)"
    return None


def why_not_libvirtd() -> str | None:
    """Why no libvirtd can be started, or None."""
    missing = libvirtd.missing_tools()
    return f"needs {', '.join(missing)}" if missing else None


def why_not_engines() -> str | None:
    """Why no container engines can be started, or None."""
    missing = packages.missing()
    return f"needs {', '.join(missing)}" if missing else None


WHY_NOT = {
    "host": why_not_host,
    "vm": why_not_vm,
    "libvirt": why_not_libvirt,
    "libvirtd": why_not_libvirtd,
    "engines": why_not_engines,
}


def refuse(reason: str) -> None:
    """Ends the present test: skipped, or failed where DASEC_CI=1 says that nothing may be missing."""
    if IN_CI:
        pytest.fail(f"{reason}, and DASEC_CI=1 forbids skipping", pytrace=False)
    pytest.skip(reason)


def require_host() -> None:
    """For a fixture that needs root and this kernel without being marked itself."""
    reason = why_not_host()
    if reason is not None:
        refuse(reason)


def pytest_runtest_setup(item: pytest.Item) -> None:
    run_slow = item.config.getoption("--run-slow")
    if item.get_closest_marker("slow") and not run_slow:
        pytest.skip("slow: run with --run-slow")
    if item.get_closest_marker("thorough") and not (run_slow or IN_CI):
        pytest.skip("thorough: .ci/run has it; by hand with --run-slow")
    for marker, why_not in WHY_NOT.items():
        reason = why_not() if item.get_closest_marker(marker) else None
        if reason is not None:
            refuse(reason)
    if stage(item) is Stage.ALONE:
        item.config.stash[AHEAD].wait()


@pytest.fixture(scope="session")
def ahead(pytestconfig: pytest.Config) -> Ahead:
    """What came of the errands."""
    return pytestconfig.stash[AHEAD]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the clone."""
    return REPOSITORY


@pytest.fixture(scope="session")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package, built once for all tests that want it, whichever part of a run they are in."""
    reason = debian.why_not()
    if reason is not None:
        refuse(reason)
    shared = os.environ.get("DASEC_SHARED")  # by tools/run-tests
    folder = Path(shared) if shared else tmp_path_factory.mktemp("deb")
    with (folder / "deb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for found in folder.glob("*.deb"):
            return found
        built = debian.build(folder / "unfinished")
        return built.rename(folder / built.name)
