"""A URL that a user gave as the place of a service."""

from __future__ import annotations

import urllib.parse

from ..errors import ExitStatus, Refusal


def base_url(url: str, option: str, like: str) -> str:
    """It without a last slash. Refuses (status 2) what no service can be asked by, with one that is `like` it
    should be."""
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        (parts.hostname or "").encode("idna")  # as who asks it will: no label may be empty or too long
        plain = url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        usable = plain = False
    if not usable or not plain or parts.query or parts.fragment or parts.username:
        raise Refusal(ExitStatus.USAGE, f"{option}: {url}: write it as {like}")
    return url.rstrip("/")
