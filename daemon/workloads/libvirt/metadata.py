"""How a domain opts in by itself: an element of ours in the domain's <metadata>.

    <metadata>
      <dasec:vm xmlns:dasec="https://dasec.invalid/xmlns/vm/1" share="2048"/>
    </metadata>

libvirt keeps such an element through edits and migrations if it has a namespace, and drops it without a word
if it has none (cloudstack #2410). What we do not know in it is reported and otherwise ignored, so that a
host with an older daemon takes a domain from a newer one.
"""

from __future__ import annotations

from typing import NamedTuple
from xml.etree.ElementTree import Element, tostring

NAMESPACE = "https://dasec.invalid/xmlns/vm/1"
"""A name, not an address; the top-level domain `invalid` (RFC 2606) says so."""

PREFIX = "dasec"
TAG = f"{{{NAMESPACE}}}vm"

SHARES = range(2, 262144 + 1)
"""What cgroup v1 takes as cpu.shares (MIN_SHARES, MAX_SHARES in kernel/sched/sched.h)."""


_DIGITS = 20
"""More are no share, whatever zeros are among them; beyond 4300 Python refuses to read a number."""


class Consent(NamedTuple):
    """What the element says: manage this domain, with this share (None: the one that the host gives it).
    `complaints` are for the log."""

    share: int | None = None
    complaints: tuple[str, ...] = ()


def parse(metadata: Element | None) -> Consent | None:
    """What a <metadata> element holds for us; None: the domain did not opt in."""
    element = None if metadata is None else metadata.find(TAG)
    if element is None:
        return None
    complaints = [_complaint(name, value) for name, value in element.items() if name != "share"]
    share = element.get("share")
    if share is None:
        return Consent(None, tuple(sorted(complaints)))
    if share.isascii() and share.isdecimal() and len(share) <= _DIGITS and int(share) in SHARES:
        return Consent(int(share), tuple(sorted(complaints)))
    complaints.append(f"share {share[:20]!r} is no integer from {SHARES[0]} to {SHARES[-1]}: it is ignored")
    return Consent(None, tuple(sorted(complaints)))


def _complaint(name: str, value: str) -> str:
    """A class is what many ask for, and no policy knows one: who means importance has to say how much."""
    if name == "class":
        return f"class {value[:20]!r} is ignored, no policy knows classes: give a share"
    return f"unknown attribute {name!r} is ignored"


def render(opt_in: Consent) -> str:
    """The element as libvirt takes it: it declares the namespace itself."""
    share = {} if opt_in.share is None else {"share": str(opt_in.share)}
    return tostring(Element("vm", share), encoding="unicode")
