"""nginx with files of its own and our open-loop client, which takes them compressed if nginx may do that."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.process import Child, free_port

from .options import absent, one_of, options_of, whole
from .served import (
    BESIDE,
    BURSTING,
    NUMBER_BYTES,
    asked_when_up,
    background_of,
    beside,
    listens,
    web_client,
)

OPTIONS = {**BESIDE, "connections": "16", "files": "16", "file-bytes": "20000", "gzip": "true"}

NAME = "nginx"
"""Of its workers, and of the master, which sleeps."""

TEXT_SEED, WORDS, WORD_LETTERS = 1, 2000, (2, 10)
"""Of words that come again, files are as compressible as text: to about two fifths."""

CONFIGURATION = """\
daemon off;
user root;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    gzip {gzip};
    gzip_types *;
    server {{
        listen {address}:{port} reuseport;
        root {folder}/files;
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Nginx:
    """`threads` are workers."""

    name: str = NAME
    kind: WorkKind = WorkKind.SERVICE
    package: str = NAME
    program: str = NAME
    vcpu_names: tuple[str, ...] = (NAME, BURSTING)
    is_exact: bool = True

    def missing(self) -> str | None:
        """Of the client and of a server of our own."""
        return missing_tool() or absent(self.program, self.package)

    def vcpus(self, order: WorkOrder) -> int:
        """With the master."""
        return 1 + order.threads + background_of(order, options_of(order, OPTIONS))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        one_of(order, "gzip", options_of(order, OPTIONS)["gzip"], ("true", "false"))
        return (NAME,)

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options, port = options_of(order, OPTIONS), free_port()
        files, file_bytes = (whole(order, name, options[name]) for name in ("files", "file-bytes"))
        order.folder.mkdir(parents=True)
        write_files(order.folder / "files", files, file_bytes)
        server = self._server(order, place, port, options["gzip"])

        def ask() -> ToolRun:
            asked = web_client(order, place, port, options["connections"], str(files))
            return ToolRun(order, asked, server, beside(order, place, options))

        def up() -> bool:
            return len(server.pids()) > order.threads and listens(port)  # the master listens before it forks

        return asked_when_up(server, up, port, ask)

    def _server(self, order: WorkOrder, place: Place, port: int, gzip: str) -> Child:
        file = order.folder / "nginx.conf"
        text = CONFIGURATION.format(
            workers=order.threads,
            folder=order.folder,
            gzip="on" if gzip == "true" else "off",
            address=place.listens_at,
            port=port,
        )
        file.write_text(text, encoding="ascii")
        program = shutil.which(self.program) or self.program
        command = [program, "-c", str(file), "-e", str(order.folder / "error.log"), "-p", str(order.folder)]
        return Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))


def write_files(folder: Path, files: int, file_bytes: int) -> None:
    """Named by their numbers, of words that come again; the same each time."""
    folder.mkdir(parents=True)
    chance = random.Random(TEXT_SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(*WORD_LETTERS))) for _ in range(WORDS)]
    for number in range(files):
        # A word has three bytes at least, its space included.
        text = " ".join(chance.choices(words, k=file_bytes // (WORD_LETTERS[0] + 1) + 1))[:file_bytes]
        (folder / f"{number:0{NUMBER_BYTES}d}").write_text(text, encoding="ascii")
