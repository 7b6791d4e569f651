"""Nova's own scheduler code ranks hosts by what our extender says. It has an environment of its own:
Nova brings a hundred packages, so this is for the long run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .prometheus_server import serving
from .test_extender import busy, extender

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "fleet/openstack"
NOVA = "nova==34.0.0"

PROGRAM = """
import json, sys
from types import SimpleNamespace
from nova import conf, objects
from nova.scheduler.weights import HostWeightHandler
objects.register_all()
conf.CONF([], project="nova", default_config_files=[])
handler = HostWeightHandler()
(weigher,) = handler.get_matching_classes(["dasec_nova.DasecWeigher"])
conf.CONF.set_override("extender_url", sys.argv[1], group="dasec")
conf.CONF.set_override("timeout", 10.0, group="dasec")
hosts = [SimpleNamespace(host=name, nodename=name, aggregates=[]) for name in ("full", "unknown", "empty")]
wanted = SimpleNamespace(flavor=SimpleNamespace(vcpus=2))
found = handler.get_weighed_objects([weigher()], hosts, wanted)
print(json.dumps([[each.obj.nodename, each.weight] for each in found]))
"""


@pytest.fixture(scope="module")
def nova(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has Nova."""
    place = tmp_path_factory.mktemp("nova")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = place / "bin/python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", NOVA]
    subprocess.run(pip, check=True)
    return python


def weighed(nova: Path, url: str) -> list[tuple[str, float]]:
    """The hosts as Nova's handler orders them, the best first."""
    environment = os.environ | {"PYTHONPATH": str(FOLDER)}
    command = [str(nova), "-c", PROGRAM, url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return [(str(name), float(weight)) for name, weight in json.loads(done.stdout)]


def test_the_host_whose_vcpus_would_wait_least_comes_first(nova: Path) -> None:
    with serving(busy()) as url, extender(url) as port:
        assert weighed(nova, f"http://127.0.0.1:{port}") == [("empty", 1.0), ("unknown", 0.5), ("full", 0.0)]


def test_without_the_extender_no_host_is_better(nova: Path) -> None:
    assert {weight for _, weight in weighed(nova, "http://127.0.0.1:9")} == {0.0}
