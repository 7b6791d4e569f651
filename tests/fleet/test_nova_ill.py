"""Whatever the extender answers, Nova's scheduler goes on, soon, and no host is better.

Something stands in for Nova, as far as the weigher needs it; tests/fleet/test_nova.py has the real one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "fleet/openstack"

STAND_IN = {
    "nova/__init__.py": "",
    "nova/scheduler/__init__.py": "",
    "nova/scheduler/weights.py": "class BaseHostWeigher: pass\n",
    "nova/conf.py": """
from types import SimpleNamespace
CONF = SimpleNamespace(dasec=SimpleNamespace(), register_opts=lambda options, group: None)
""",
    "oslo_config/__init__.py": "",
    "oslo_config/cfg.py": "URIOpt = FloatOpt = lambda *_, **__: None\n",
    "oslo_log/__init__.py": "",
    "oslo_log/log.py": "import logging\ngetLogger = logging.getLogger\n",
}

PROGRAM = """
import json, sys
from types import SimpleNamespace
from nova.conf import CONF
from dasec_nova import DasecWeigher
CONF.dasec.extender_url, CONF.dasec.timeout = sys.argv[1], 0.5
hosts = [SimpleNamespace(obj=SimpleNamespace(nodename=name)) for name in ("a", "b")]
wanted = SimpleNamespace(flavor=SimpleNamespace(vcpus=2))
print(json.dumps(DasecWeigher().weigh_objects(hosts, wanted)))
"""

HEAD = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n"


def whole(said: object) -> bytes:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return HEAD % len(text) + text


@contextmanager
def answering(answer: bytes, *, drips: bool = False) -> Iterator[str]:
    """One request gets this; `drips`: a byte every tenth of a second."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_one() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                head, _, body = answer.partition(b"\r\n\r\n")
                connection.sendall(head + b"\r\n\r\n")
                if not drips:
                    connection.sendall(body)
                for at in range(len(body) if drips else 0):
                    connection.sendall(body[at : at + 1])
                    over.wait(0.1)

        over = threading.Event()
        thread = threading.Thread(target=answer_one)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in STAND_IN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def weights(place: Path, url: str) -> list[float]:
    environment = os.environ | {"PYTHONPATH": f"{place}:{FOLDER}"}
    command = [sys.executable, "-c", PROGRAM, url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [float(weight) for weight in json.loads(done.stdout)]


def test_scores_are_those_that_the_extender_gives(place: Path) -> None:
    with answering(whole([{"Host": "a", "Score": 3}, {"Host": "b", "Score": 10}])) as url:
        assert weights(place, url) == [3, 10]


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        HEAD % 100 + b'[{"Host": "a"',
        whole(b"[" * 100_000),
        whole({"Host": "a", "Score": 3}),
        whole([{"Host": "a", "Score": "much"}, {"Host": "b", "Score": 1}]),
        whole([{"Host": "a", "Score": None}]),
        whole([{"Host": "a", "Score": 11}]),
        whole(b'[{"Host": "a", "Score": NaN}, {"Host": "b", "Score": 5}]'),
    ],
    ids=["no HTTP", "broken off", "too deep", "no list", "a word", "nothing", "too high", "no number"],
)
def test_an_ill_answer_is_none(place: Path, answer: bytes) -> None:
    with answering(answer) as url:
        assert weights(place, url) == [0, 0]


def test_an_answer_that_drips_is_not_waited_for(place: Path) -> None:
    with answering(whole(json.dumps([]).encode() + b" " * 100_000), drips=True) as url:
        assert weights(place, url) == [0, 0]
