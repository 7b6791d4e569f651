"""A small API server of Kubernetes: nodes are a state, and JSON patches of their status change it as RFC
6902 says: an addition replaces, what is not there cannot be removed, and a patch is applied whole or not at
all."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Cluster:
    """By node, its capacity. `token`: what a client must bear. `asked`: how often each node was patched."""

    nodes: dict[str, dict[str, str]]
    token: str | None = None
    asked: dict[str, int] = field(default_factory=dict)

    def patch(self, node: str, operations: list[dict[str, str]]) -> tuple[int, dict[str, object]]:
        """Its answer."""
        self.asked[node] = self.asked.get(node, 0) + 1
        if node not in self.nodes:
            return 404, status(404, f'nodes "{node}" not found')
        capacity = dict(self.nodes[node])
        for each in operations:
            name = each["path"].removeprefix("/status/capacity/").replace("~1", "/").replace("~0", "~")
            if each["op"] == "add" and each["path"].startswith("/status/capacity/"):
                capacity[name] = each["value"]
            elif each["op"] == "remove" and name in capacity:
                del capacity[name]
            else:
                return 422, status(422, f"the server rejected our request: {each}")
        self.nodes[node] = capacity
        return 200, {"kind": "Node", "metadata": {"name": node}, "status": {"capacity": capacity}}


def status(code: int, message: str) -> dict[str, object]:
    """metav1.Status of a failure."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


@contextmanager
def cluster_at(cluster: Cluster) -> Iterator[str]:
    """Its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(*self.found(body))

        def found(self, body: bytes) -> tuple[int, dict[str, object]]:
            if cluster.token and self.headers.get("Authorization") != f"Bearer {cluster.token}":
                return 401, status(401, "Unauthorized")
            if self.headers["Content-Type"] != "application/json-patch+json":
                return 415, status(415, f"the body was {self.headers['Content-Type']}")
            start, _, rest = self.path.partition("/api/v1/nodes/")
            node, _, sub = rest.partition("/")
            if start or sub != "status":
                return 404, status(404, "the server could not find the requested resource")
            return cluster.patch(urllib.parse.unquote(node), json.loads(body))

        def answer(self, code: int, said: dict[str, object]) -> None:
            content = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
