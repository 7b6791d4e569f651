"""A small Prometheus: its series are a state, queries look into it, and it can be ill in several ways."""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Series = tuple[str, str, str]
"""Name, instance, workload; "" where it has none."""

STATUSES = {"starting": 503, "leads astray": 302}
"""Of HTTP, by what is wrong."""


@dataclass
class Answers:
    """What it holds, and what is wrong with it. `now`, `before`: values now and half an hour ago; `day`: what
    there was within a day."""

    now: dict[Series, str] = field(default_factory=dict)
    before: dict[Series, str] = field(default_factory=dict)
    day: dict[Series, str] = field(default_factory=dict)
    illness: str = ""

    def to(self, query: str) -> list[dict[str, object]]:
        """The vector of one of the three questions that the command has."""
        if by_name := re.fullmatch(r'\{__name__=~"([^"]*)"\}', query):
            held, names = self.now, by_name[1]
        elif earlier := re.fullmatch(r"(\S+) offset 30m", query):
            held, names = self.before, earlier[1]
        elif day := re.fullmatch(r"present_over_time\((\S+)\[1d\]\)", query):
            held, names = self.day, day[1]
        else:
            raise ValueError(query)
        return [
            {"metric": labels(each), "value": [1764000000.0, value]}
            for each, value in held.items()
            if re.fullmatch(names, each[0])
        ]


def labels(series: Series) -> dict[str, str]:
    return {
        name: value for name, value in zip(("__name__", "instance", "workload"), series, strict=True) if value
    }


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """Its URL."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(parts.query)["query"][0]
            body = json.dumps({"status": "success", "data": {"result": answers.to(query)}}).encode()
            if answers.illness == "silent":
                over.wait()
                return
            if answers.illness == "other":
                body = b"<html>hello</html>"
            if answers.illness == "refuses":
                body = b'{"status": "error", "errorType": "execution", "error": "too many samples"}'
            self.send_response(STATUSES.get(answers.illness, 200))
            if answers.illness == "leads astray":
                self.send_header("Location", "http://a..b:9090/")
            self.send_header("Content-Length", str(len(body) + (answers.illness == "breaks off")))
            self.end_headers()
            if answers.illness == "drips":
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    if over.wait(0.05):
                        return
            else:
                self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
