"""`dasec vm`: a domain opts in or out by an element in its <metadata>, written by libvirt itself.

The daemon never calls libvirt; this command does, and the daemon sees the result in the domain's status file.
"""

from __future__ import annotations

import sys
from typing import Protocol

from ..errors import ExitStatus, Refusal
from ..workloads.libvirt import metadata
from ..workloads.libvirt.metadata import Consent

ELEMENT = 2
AFFECT_LIVE, AFFECT_CONFIG = 1, 2
"""libvirt-domain.h: VIR_DOMAIN_METADATA_ELEMENT, VIR_DOMAIN_AFFECT_LIVE and _CONFIG."""

NO_BINDING = (
    "libvirt's Python binding is not installed: beside Debian's package of dasec install python3-libvirt;"
    f" else, in the clone, `{sys.executable} -m pip install '.[libvirt]'` builds it"
    " (needs libvirt-dev, pkg-config, gcc and python3-dev)"
)


class Domain(Protocol):
    """What we use of a virDomain."""

    def isActive(self) -> int:
        """1 while it runs."""

    def isPersistent(self) -> int:
        """1 if it has a configuration that outlives its run."""

    def setMetadata(self, kind: int, xml: str | None, key: str | None, uri: str, flags: int) -> int:
        """Put an element of that namespace into <metadata>, or take it out."""


class Connection(Protocol):
    """What we use of a virConnect."""

    def lookupByName(self, name: str) -> Domain:
        """The domain of that name."""


def enable(uri: str, name: str, opt_in: Consent) -> str:
    """Let a domain opt in. Says what was done."""
    share = "the host's own share" if opt_in.share is None else f"share {opt_in.share}"
    return f"{name}: opted in with {share}, {_on_domain(uri, name, metadata.render(opt_in))}"


def disable(uri: str, name: str) -> str:
    """Let a domain opt out; harmless to repeat. Says what was done."""
    return f"{name}: opted out, {_on_domain(uri, name, None)}"


def write(domain: Domain, element: str | None) -> str:
    """Write our element where the domain has a place for it, or take it out; says where."""
    active, persistent = bool(domain.isActive()), bool(domain.isPersistent())
    flags = AFFECT_LIVE * active | AFFECT_CONFIG * persistent
    domain.setMetadata(ELEMENT, element, metadata.PREFIX if element else None, metadata.NAMESPACE, flags)
    places = ["as it runs"] * active + ["in its configuration"] * persistent
    return " and ".join(places)


def _on_domain(uri: str, name: str, element: str | None) -> str:
    try:
        (uri + name).encode()
    except UnicodeEncodeError as error:
        where = f"{uri}: domain {name}"
        raise Refusal(ExitStatus.USAGE, f"{where}: is not UTF-8, and libvirt has no other names") from error
    try:
        import libvirt
    except ImportError as error:
        raise Refusal(ExitStatus.HOST, NO_BINDING) from error
    libvirt.registerErrorHandler(lambda context, error: None, None)  # else it prints each error itself
    try:
        connection = libvirt.open(uri)
    except libvirt.libvirtError as error:
        hint = "is libvirtd or virtqemud running, and may you use it?"
        raise Refusal(ExitStatus.HOST, f"{uri}: {error}: {hint}") from error
    try:
        return _write_to(connection, name, element)
    except libvirt.libvirtError as error:
        raise Refusal(ExitStatus.FAILED, f"{uri}: domain {name}: {error}") from error
    finally:
        connection.close()


def _write_to(connection: Connection, name: str, element: str | None) -> str:
    return write(connection.lookupByName(name), element)
