"""A cluster learns of whole cores: what is shown, what each node is told, and what becomes of it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from dasec.commands import node_status
from dasec.commands.cli import commands
from dasec.commands.fleet_cores import CoresWanted, Teller, one_round
from dasec.commands.node_status import ApiServer, api_server
from dasec.errors import Refusal
from dasec.placement.whole_cores import RESOURCE, offered, untold
from guests.waiting import wait_for

from .api_server import Cluster, cluster_at
from .prometheus_server import Answers, serving

AMOUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))


def fleet_of(**cores: int) -> Answers:
    return Answers({("dasec_cores", f"{name}:9753", ""): str(there) for name, there in cores.items()})


def cores(url: str, *options: str) -> Result:
    return CliRunner().invoke(commands, ["fleet", "cores", "--prometheus", url, *options])


def refused(done: Result) -> tuple[int, str]:
    assert isinstance(done.exception, Refusal), done.exception
    (line,) = done.exception.lines
    return done.exception.status, line


def refusal_of(api: ApiServer, node: str) -> str:
    untold = api.patch(node, [])
    return "" if untold is None else untold.why


def test_what_is_shown_is_what_a_shell_can_run() -> None:
    with serving(fleet_of(a=8, b=1)) as url:
        lines = cores(url, "--keep", "2").output.splitlines()
    words = [shlex.split(line) for line in lines]
    assert [each[:4] for each in words] == [
        ["kubectl", "patch", "node", "a"],
        ["kubectl", "patch", "node", "b"],
    ]
    path = "/status/capacity/dasec.io~1core"
    patches = [json.loads(each[each.index("--patch") + 1]) for each in words]
    assert patches == [
        [{"op": "add", "path": path, "value": "6"}],
        [{"op": "add", "path": path, "value": "0"}],
    ]


def test_a_cluster_is_told_until_a_signal_and_then_keeps_what_it_knows() -> None:
    cluster = Cluster({"a": {"cpu": "8"}, "b": {"cpu": "16"}})
    with serving(fleet_of(a=8, b=16)) as prometheus, cluster_at(cluster) as api:
        options = ("--prometheus", prometheus, "--api", api, "--every", "1")
        command = [sys.executable, "-m", "dasec", "fleet", "cores", *options]
        with subprocess.Popen(command) as teller:
            wait_for(lambda: all(RESOURCE in each for each in cluster.nodes.values()))
            teller.send_signal(signal.SIGTERM)
        assert teller.returncode == 0
    assert cluster.nodes == {"a": {"cpu": "8", RESOURCE: "7"}, "b": {"cpu": "16", RESOURCE: "15"}}


def test_removal_leaves_every_node_as_it_was_and_may_be_said_twice() -> None:
    cluster = Cluster({"a": {"cpu": "8", RESOURCE: "7"}, "b": {"cpu": "16"}})
    with serving(fleet_of(a=8, b=16)) as prometheus, cluster_at(cluster) as api:
        for _ in range(2):
            assert cores(prometheus, "--api", api, "--remove").exit_code == 0
            assert cluster.nodes == {"a": {"cpu": "8"}, "b": {"cpu": "16"}}


def test_a_node_that_cannot_be_told_that_its_daemon_is_lost_is_told_later() -> None:
    cluster = Cluster({"a": {}, "b": {}})
    said: list[str] = []
    with cluster_at(cluster) as api:
        teller = Teller(ApiServer(api), said.append)
        teller.round({"a": 7, "b": 3})
        cluster.token = "another"
        teller.round({"a": 7})
        cluster.token = None
        teller.round({"a": 7})
    assert (cluster.nodes["b"], len(said)) == ({RESOURCE: "0"}, 1)


def lost(**cores: int) -> dict[tuple[str, str, str], str]:
    """What there was within a day."""
    return fleet_of(**cores).now


def test_a_node_that_lost_its_daemon_while_nobody_told_nodes_offers_none() -> None:
    cluster = Cluster({"a": {}, "b": {RESOURCE: "15"}})
    fleet = fleet_of(a=8)
    fleet.day = lost(a=8, b=16, deleted=4)
    with serving(fleet) as prometheus, cluster_at(cluster) as api:
        teller = Teller(ApiServer(api), pytest.fail)
        for _ in range(2):
            one_round(CoresWanted(prometheus, kept=1, timeout_s=10, remove=False), teller)
    assert cluster.nodes == {"a": {RESOURCE: "7"}, "b": {RESOURCE: "0"}}
    assert cluster.asked == {"a": 1, "b": 1, "deleted": 1}, "a node that is gone is nobody's trouble"


def test_removal_is_also_from_nodes_whose_daemon_is_gone() -> None:
    cluster = Cluster({"a": {RESOURCE: "7"}, "b": {RESOURCE: "15"}})
    fleet = fleet_of()
    fleet.day = lost(a=8, b=16, deleted=4)
    with serving(fleet) as prometheus, cluster_at(cluster) as api:
        lines = cores(prometheus, "--remove").output.splitlines()
        assert [shlex.split(line)[3] for line in lines] == ["a", "b", "deleted"]
        assert cores(prometheus, "--api", api, "--remove").exit_code == 0
    assert cluster.nodes == {"a": {}, "b": {}}


def test_a_node_is_told_only_what_it_does_not_know() -> None:
    cluster = Cluster({"a": {}, "b": {}})
    with cluster_at(cluster) as api:
        teller = Teller(ApiServer(api), pytest.fail)
        for now in ({"a": 7, "b": 3}, {"a": 7, "b": 3}, {"a": 7, "b": 4}):
            teller.round(now)
    assert (cluster.asked, cluster.nodes["b"]) == ({"a": 1, "b": 2}, {RESOURCE: "4"})


def test_a_node_that_forgot_is_told_again() -> None:
    cluster = Cluster({"a": {}})
    with cluster_at(cluster) as api:
        teller = Teller(ApiServer(api), pytest.fail)
        teller.round({"a": 7})
        cluster.nodes["a"] = {}
        for _ in range(10):
            teller.round({"a": 7})
    assert cluster.nodes["a"] == {RESOURCE: "7"}


def test_a_node_whose_daemon_is_lost_offers_none() -> None:
    cluster = Cluster({"a": {}, "b": {}})
    with cluster_at(cluster) as api:
        teller = Teller(ApiServer(api), pytest.fail)
        teller.round({"a": 7, "b": 3})
        teller.round({"a": 7})
    assert cluster.nodes == {"a": {RESOURCE: "7"}, "b": {RESOURCE: "0"}}


def test_a_prometheus_that_leads_astray_is_asked_again_until_a_signal() -> None:
    answers = fleet_of(a=8)
    answers.illness = "leads astray"
    cluster = Cluster({"a": {}})
    with serving(answers) as url, cluster_at(cluster) as api:
        words = ("fleet", "cores", "--prometheus", url, "--api", api, "--every", "1")
        command = (sys.executable, "-m", "dasec", *words)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as telling:
            assert telling.stderr
            assert (
                telling.stderr.readline() == f"{url}: leads to an address that is none: is it a Prometheus?\n"
            )
            answers.illness = ""
            wait_for(lambda: cluster.nodes["a"] != {})
            telling.send_signal(signal.SIGTERM)
            assert telling.wait() == 0


def test_what_cannot_be_told_is_said_once_and_tried_in_each_round() -> None:
    said: list[str] = []
    cluster = Cluster({"a": {}})
    with cluster_at(cluster) as api:
        teller = Teller(ApiServer(api), said.append)
        for _ in range(3):
            teller.round({"a": 7, "gone": 3})
        assert [line.replace(api, "API") for line in said] == [
            'node gone: API answers 404: nodes "gone" not found'
        ]
        cluster.nodes["gone"] = {}
        teller.round({"a": 7, "gone": 3})
    assert cluster.nodes["gone"] == {RESOURCE: "3"}


def test_a_pods_token_is_read_anew_for_each_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster({"a": {}}, token="first")
    (tmp_path / "token").write_text("first\n")
    monkeypatch.setattr(node_status, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    account = api_server("in-cluster")
    assert account == ApiServer("https://[fd00::1]:443", tmp_path / "token", tmp_path / "ca.crt")
    with cluster_at(cluster) as url:
        api = ApiServer(url, account.token)
        assert api.patch("a", []) is None
        cluster.token = "second"
        assert "401: Unauthorized" in refusal_of(api, "a")
        (tmp_path / "token").write_text("second\n")
        assert api.patch("a", []) is None


def test_a_name_of_a_node_cannot_leave_its_place_in_the_url() -> None:
    cluster = Cluster({"../../x": {}})
    with cluster_at(cluster) as url:
        assert ApiServer(url).patch("../../x", []) is None


def test_nobody_there_is_one_line() -> None:
    with cluster_at(Cluster({})) as url:
        pass
    assert "cannot be told" in refusal_of(ApiServer(url), "a")


@pytest.mark.parametrize("there", ["8193", "1e300", "-4"])
def test_a_node_with_as_many_cores_as_none_has_offers_none(there: str) -> None:
    fleet = Answers({("dasec_cores", "a:9753", ""): "8", ("dasec_cores", "b:9753", ""): there})
    with serving(fleet) as url:
        lines = cores(url).output.splitlines()
    assert [json.loads(shlex.split(line)[-1])[0]["value"] for line in lines] == ["7", "0"]


def test_bad_words_are_one_line_each() -> None:
    with serving(fleet_of(a=8)) as url:
        for where, word in (
            ("cluster", "write it as"),
            ("http://a..b:8001", "write it as"),
            ("in-cluster", "no pod"),
        ):
            status, line = refused(cores(url, "--api", where))
            assert (status, word in line) == (2, True)
        with cluster_at(Cluster({})) as api:
            assert refused(cores(url, "--api", api, "--remove"))[0] == 1
    with serving(fleet_of()) as url:
        assert refused(cores(url)) == (1, f"{url}: knows no host: does it scrape one with a daemon?")
    assert refused(cores("nowhere"))[0] == 2


@given(AMOUNTS, AMOUNTS)
def test_once_all_are_told_there_is_nothing_to_tell(now: dict[str, int], told: dict[str, int]) -> None:
    after = told | untold(now, told)
    assert untold(now, after) == {}
    assert all(after[node] == now.get(node, 0) for node in after)


@given(AMOUNTS, st.integers(0, 3))
def test_what_a_node_offers_and_what_it_keeps_are_its_cores(now: dict[str, int], kept: int) -> None:
    found = offered({f"{name}:9753": there for name, there in now.items()}, kept)
    assert {name: max(0, there - kept) for name, there in now.items()} == found
