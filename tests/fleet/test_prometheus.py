"""A real Prometheus with the pattern of a fleet scrapes a real exporter."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.lab.kit.process import free_port
from tests.conftest import REPOSITORY, refuse

from ..unit.service.metrics import exporter
from ..unit.service.periods import STATE, busy_history
from ..unit.service.test_metrics import renamed

RULES = REPOSITORY / "fleet/prometheus"
WAIT_S = 120.0
HOSTS = 60
"""More than the page of fleets lets keep single vCPUs. All are the same exporter under as many names."""

SERIES_OF_A_HOST, OF_A_WORKLOAD = 90 + 6, 7 + 3
"""Scraped and recorded, by the page of fleets."""
OF_A_VCPU = '{__name__=~"(dasec|libvirt_domain)_vcpu_.+"}'
BLAMED = "count(sum by (instance) (dasec:workload_blame) > 0)"


class Server:
    """What answers queries."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/query?"

    def values(self, query: str) -> dict[str, float]:
        """By the series' labels, without name and place. Nothing as long as it does not answer."""
        try:
            with urllib.request.urlopen(
                self._url + urllib.parse.urlencode({"query": query}), timeout=10
            ) as got:
                found = json.load(got)["data"]["result"]
        except OSError:
            return {}
        return {
            " ".join(
                value for name, value in one["metric"].items() if name not in ("__name__", "instance", "job")
            ): float(one["value"][1])
            for one in found
        }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Server, int]]:
    """A Prometheus of many hosts that asks one port for the metrics of all, every second."""
    if shutil.which("prometheus") is None:
        refuse("needs prometheus (Debian's package of that name)")
    port, target = free_port(), free_port()
    shutil.copytree(RULES, tmp_path / "fleet/prometheus")
    shutil.copytree(REPOSITORY / "packaging/prometheus", tmp_path / "packaging/prometheus")
    pattern = tmp_path / "fleet/prometheus/prometheus.yml"
    pattern.write_text(
        pattern.read_text().replace("interval: 30s", "interval: 1s").replace("interval: 1m", "interval: 1s")
    )
    (pattern.parent / "hosts").mkdir()
    hosts = [
        {"targets": [f"127.0.0.1:{target}"], "labels": {"instance": f"h{number}", "__param_of": str(number)}}
        for number in range(HOSTS)
    ]
    (pattern.parent / "hosts/all.yml").write_text(json.dumps(hosts))
    command = ["prometheus", f"--config.file={pattern}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    log = tmp_path / "log"
    with (
        log.open("w") as file,
        subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=file) as run,
    ):
        try:
            yield Server(port), target
        finally:
            run.terminate()
            run.wait()


def test_the_numbers_of_sixty_hosts_come_out_of_a_real_prometheus_that_keeps_no_series_of_a_vcpu(
    server: tuple[Server, int],
) -> None:
    prometheus, target = server
    (entry,) = renamed(busy_history(1), "CPU {}/KVM")
    used = entry.period.usage.values()
    ready, ran = sum(each.ready_ns for each in used), sum(each.consumed_ns for each in used)
    told = exporter(target)
    try:
        until = time.monotonic() + WAIT_S
        while prometheus.values(BLAMED) != {"": HOSTS} and time.monotonic() < until:
            told.write(entry, STATE)
            time.sleep(0.1)
        assert prometheus.values(BLAMED) == {"": HOSTS}
        assert prometheus.values("dasec:workload_blame").keys() == {"hungry", "calm"}
        assert prometheus.values("dasec:host_wait") == {"": pytest.approx(ready / (ready + ran))}
        assert prometheus.values("dasec:host_commit") == {"": 4.0}
        assert prometheus.values("scrape_samples_scraped")[""] > 150, "vCPUs were told of"
        assert prometheus.values(OF_A_VCPU) == {}
        kept = prometheus.values('count({__name__=~"dasec.+"})')[""]
        assert HOSTS * 100 < kept <= HOSTS * (SERIES_OF_A_HOST + 2 * OF_A_WORKLOAD)
    finally:
        told.close()
