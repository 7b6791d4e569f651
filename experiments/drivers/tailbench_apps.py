"""How TailBench's applications are called: their own run.sh has numbers of threads and requests fixed in it.

Paths, arguments and variables are those of TailBench v0.9 and TailBench++ (run.sh, run_networked.sh and the
harness of each); nothing of them is part of this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

DATA = "{data}/"
LIBRARIES = "LD_LIBRARY_PATH"
KEPT_OF_NAMES = 15
"""TASK_COMM_LEN without the end of the string (proc_pid_comm(5))."""


@dataclass(frozen=True, slots=True)
class Application:
    """One folder of an installation. `{threads}` and `{data}` are filled in."""

    folder: str
    integrated: str
    server: str
    client: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    """What else of its folder it reads, by the path that it was built with."""

    def filled(self, threads: int, data: Path) -> tuple[tuple[str, ...], dict[str, str]]:
        """Arguments of the server, and variables of everybody."""
        arguments = tuple(word.format(threads=threads, data=data) for word in self.arguments)
        return arguments, {name: text.format(data=data) for name, text in self.variables.items()}

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it is told of below `{data}`."""
        words = (*self.arguments, *self.variables.values())
        return tuple(word.removeprefix(DATA) for word in words if word.startswith(DATA))

    @property
    def libraries(self) -> str | None:
        """The part of its folder with shared libraries of its own, if it is built with some."""
        return self.variables.get(LIBRARIES)

    @property
    def thread_names(self) -> str:
        """All of its threads have the program's, as far as the kernel keeps it."""
        return PurePath(self.integrated).name[:KEPT_OF_NAMES]


def _named(
    folder: str, stem: str, arguments: str, kept: tuple[str, ...] = (), **variables: str
) -> Application:
    integrated, server, client = (
        f"{stem}_{kind}" for kind in ("integrated", "server_networked", "client_networked")
    )
    return Application(folder, integrated, server, client, tuple(arguments.split()), variables, kept)


APPLICATIONS: Mapping[str, Application] = {
    "masstree": _named("masstree", "mttest", "-j{threads} mycsba masstree"),
    "silo": _named(
        "silo",
        "out-perf.masstree/benchmarks/dbtest",
        "--verbose --bench tpcc --num-threads {threads} --scale-factor 1 --retry-aborted-transactions"
        " --ops-per-worker 10000000",
    ),
    "img-dnn": _named(
        "img-dnn",
        "img-dnn",
        "-r {threads} -f {data}/img-dnn/models/model.xml -n 100000000",
        TBENCH_MNIST_DIR="{data}/img-dnn/mnist",
    ),
    "xapian": Application(
        "xapian",
        "xapian_integrated",
        "xapian_networked_server",
        "xapian_networked_client",
        ("-n", "{threads}", "-d", "{data}/xapian/wiki", "-r", "1000000000"),
        {"TBENCH_TERMS_FILE": "{data}/xapian/terms.in", LIBRARIES: "./xapian-core-1.2.13/install/lib"},
    ),
    "sphinx": _named(
        "sphinx",
        "decoder",
        "-t {threads}",
        ("audio_samples", "sphinx-install/share/pocketsphinx/model/en-us"),
        TBENCH_AN4_CORPUS="{data}/sphinx",
        TBENCH_AUDIO_SAMPLES="audio_samples",
        LD_LIBRARY_PATH="./sphinx-install/lib",
    ),
}
