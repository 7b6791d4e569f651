"""An installation of TailBench that computes nothing: masstree's three programs, as a driver sees them.

They behave as the real ones do where that is a trap: without warm-up nothing is measured, a v0.9 server takes
one connection and no more, files are written where the program runs. One that asks itself begins behind a
barrier.
"""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = """\
#!{python} -ES
import ctypes, os, random, socket, struct, sys, time
FORMAT, FLAW, KIND = {form!r}, {flaw!r}, {kind!r}
assert sys.argv[1:] == {arguments!r}, sys.argv
assert os.path.exists("input"), "not in the application's folder"
number = lambda name: int(os.environ["TBENCH_" + name])

def write():
    chance = random.Random(number("RANDSEED"))
    path = "lats.bin" if FORMAT == "v0.9" else "lats_%d.bin" % number("ID")
    measured = number("MAXREQS") if number("WARMUPREQS") else 0
    at = time.time_ns()
    with open(path, "wb") as file:
        for _ in range(measured if FLAW != "empty" else 0):
            at += int(chance.expovariate(float(os.environ["TBENCH_QPS"])) * 1e9)
            queue, service = chance.randrange(10**6), chance.randrange(10**6)
            words = [queue, service, queue + service]
            words += [] if FORMAT == "v0.9" else [at, queue + service]
            file.write(struct.pack("<%dQ" % len(words), *words))

if KIND == "integrated":
    libc, barrier = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_barrier_init(barrier, None, 1)
    libc.pthread_barrier_wait(barrier)
    print("began at", time.monotonic_ns(), flush=True)
    write()
elif KIND == "server":
    listener = socket.create_server(("127.0.0.1", number("SERVER_PORT")))
    time.sleep(0.2)
    connection, _ = listener.accept()
    listener.close()
    hello = connection.recv(100)
    if FLAW == "short":
        print("ERROR! recvd = 15312, expected = 10240", file=sys.stderr)
        sys.exit(255)
    connection.sendall(hello)
    os.abort()
else:
    connection = socket.create_connection((os.environ["TBENCH_SERVER"], number("SERVER_PORT")))
    connection.sendall(b"hello")
    if connection.recv(100) != b"hello":
        sys.exit("recv failed")
    write()
"""


def install(root: Path, form: str = "v0.9", flaw: str = "") -> Path:
    """The folder that TAILBENCH_DIR names."""
    folder = root / "masstree"
    folder.mkdir(parents=True)
    (folder / "input").touch()
    (folder / "lats.bin").write_bytes(b"of an older run")
    (root / "configs.sh").write_text('DATA_ROOT="/data/tailbench.inputs"\n')
    for kind, name in (
        ("integrated", "integrated"),
        ("server", "server_networked"),
        ("client", "client_networked"),
    ):
        arguments = [] if kind == "client" else ["-j2", "mycsba", "masstree"]
        program = folder / f"mttest_{name}"
        program.write_text(
            PROGRAM.format(python=sys.executable, form=form, flaw=flaw, kind=kind, arguments=arguments)
        )
        program.chmod(0o755)
    return root
