"""A cluster's API server, as far as it is told a capacity of nodes (PATCH nodes/NAME/status)."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ..errors import ExitStatus, Refusal
from .web_address import base_url

IN_CLUSTER = "in-cluster"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the cluster's certificate (k8s.io/client-go, rest.InClusterConfig)."""

TIMEOUT_S = 10.0
MOST_SAID = 1 << 16
"""Bytes of a refusal: a Status object is a few hundred."""

Operations = Sequence[Mapping[str, str]]
"""A JSON Patch (RFC 6902)."""


class Untold(NamedTuple):
    """Why a node was not told: one clear line. `no_such_node`: there is none of that name."""

    why: str
    no_such_node: bool = False


class ApiServer(NamedTuple):
    """`token`: a file, read for each request, since it is renewed each hour; None: the server wants none."""

    url: str
    token: Path | None = None
    authority: Path | None = None

    def patch(self, node: str, operations: Operations) -> Untold | None:
        """None, or why it is not done."""
        headers = {"Content-Type": "application/json-patch+json", "Accept": "application/json"}
        try:
            if self.token is not None:
                headers["Authorization"] = f"Bearer {self.token.read_text(encoding='ascii').strip()}"
            request = urllib.request.Request(
                f"{self.url}/api/v1/nodes/{quote(node, safe='')}/status",
                json.dumps(operations).encode(),
                headers,
                method="PATCH",
            )
            trusted = ssl.create_default_context(cafile=self.authority) if self.authority else None
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=trusted) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            why = f"node {node}: {self.url} answers {error.code}: {_reason(error)}"
            return Untold(why, no_such_node=error.code == http.HTTPStatus.NOT_FOUND)
        except (OSError, ValueError, http.client.HTTPException) as error:
            return Untold(
                f"node {node}: {self.url} cannot be told: {getattr(error, 'reason', None) or error}"
            )
        return None


def api_server(where: str) -> ApiServer:
    """By URL, as of `kubectl proxy`, or that of the cluster in which this is a pod. Refuses (status 2) what
    is neither."""
    if where != IN_CLUSTER:
        return ApiServer(base_url(where, "--api", f"http://127.0.0.1:8001, or {IN_CLUSTER}"))
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{what}") for what in ("HOST", "PORT"))
    if not host or not port or not (ACCOUNT / "token").exists():
        raise Refusal(
            ExitStatus.USAGE, f"--api: {where}: this is no pod with a service account: give a URL instead"
        )
    address = f"[{host}]" if ":" in host else host
    return ApiServer(f"https://{address}:{port}", ACCOUNT / "token", ACCOUNT / "ca.crt")


def _reason(error: urllib.error.HTTPError) -> str:
    """What the Status object of the answer says, else what HTTP says."""
    try:
        return str(json.loads(error.read(MOST_SAID))["message"])
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException):
        return error.reason
