"""What a Prometheus answers to one query, or one clear line."""

from __future__ import annotations

import http.client
import json
import math
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import ExitStatus, Refusal
from .web_address import base_url

CHUNK_BYTES = 1 << 16
MOST_BYTES = 1 << 29
"""Half a gigabyte: the numbers of more than 10 000 hosts; an endless answer is none."""


class Sample(NamedTuple):
    """One series' value now."""

    labels: Mapping[str, str]
    value: float


def ask(url: str, query: str, timeout_s: float) -> list[Sample]:
    """The finite values that the query has now. Refuses with status 2 a URL that is none, with status 1 a
    server that does not answer, not in time, or not as Prometheus does."""
    whole = checked(url) + "/api/v1/query?" + urllib.parse.urlencode({"query": query})
    until = time.monotonic() + timeout_s
    try:
        with urllib.request.urlopen(whole, timeout=timeout_s) as answer:
            text = _body(answer, until)
    except urllib.error.HTTPError as error:
        raise _failed(url, f"answers {error.code} {error.reason}: is it a Prometheus?") from error
    except TimeoutError as error:
        raise _late(url, timeout_s) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _late(url, timeout_s) from error
        why = getattr(error.reason, "strerror", None) or error.reason
        raise _failed(url, f"cannot be asked ({why}): check address and port") from error
    except (OSError, http.client.HTTPException) as error:
        raise _failed(url, "broke off its answer: try again") from error
    except ValueError as error:
        raise _failed(url, "leads to an address that is none: is it a Prometheus?") from error
    return list(_samples(url, text))


def checked(url: str) -> str:
    """The URL without a last slash; refuses (status 2) what no Prometheus can be asked by."""
    return base_url(url, "--prometheus", "http://HOST:9090")


def _body(answer: http.client.HTTPResponse, until: float) -> bytes:
    """All of it, unless it takes too long as a whole: a timeout of sockets is one of each read."""
    parts: list[bytes] = []
    for part in iter(lambda: answer.read1(CHUNK_BYTES), b""):
        parts.append(part)
        if time.monotonic() > until:
            raise TimeoutError
        if len(parts) * CHUNK_BYTES > MOST_BYTES and sum(map(len, parts)) > MOST_BYTES:
            raise OSError("it has no end")
    if answer.length:  # read1 takes an early end for the end
        raise http.client.IncompleteRead(b"", answer.length)
    return b"".join(parts)


def _samples(url: str, text: bytes) -> Iterator[Sample]:
    """The vector of an answer."""
    try:
        told: Any = json.loads(text)
        if told["status"] != "success":
            raise _failed(url, f"{told.get('error', 'says nothing more')}: is it a Prometheus?")
        for series in told["data"]["result"]:
            value = float(series["value"][1])
            if math.isfinite(value):
                yield Sample({str(name): str(of) for name, of in series["metric"].items()}, value)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _failed(url, "answers, but not as Prometheus does: check address and path") from error


def _failed(url: str, why: str) -> Refusal:
    return Refusal(ExitStatus.FAILED, f"{url}: {why}")


def _late(url: str, timeout_s: float) -> Refusal:
    return _failed(url, f"no answer within {timeout_s:g} s: try again, or give it more by --timeout")
