"""kube-scheduler's side of the extender: what it sends, what it must get, and what it must never wait for."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dasec.commands.cli import commands
from dasec.commands.fleet_extender import CLIENTS, Connection, ExtenderServer, ExtenderWanted
from dasec.errors import Refusal
from dasec.placement import FleetHost
from dasec.placement.nodes import BEST, choose, score
from dasec.placement.pod import CPU, CPUS, BadPod, coming, quantity
from dasec.reservations import Ask, CpuClass
from dasec.workloads.containers import consent
from guests.waiting import wait_for

from ..properties.test_placement import fleets
from .prometheus_server import Answers, serving
from .test_hint import host

NO_STACK = 1 << 47
"""More than addresses for it: no thread can be started, as where there are too many already."""

NODES = ["full", "empty", "unknown"]


def pod(cpu: object = "2", **annotations: str) -> dict[str, object]:
    """As the API has it, in short."""
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": "web-7f9", "namespace": "shop", "annotations": {CPU: "shared"} | annotations}
    return {"metadata": meta, "spec": {"containers": [container]}}


def busy() -> Answers:
    """A host that waits, and one that has room."""
    return Answers(host("full:9753", 4, 0.25, web=(8, 3.5, 1, 0.5)) | host("empty:9753", 16, 0.0))


@contextmanager
def without_threads() -> Iterator[None]:
    threading.stack_size(NO_STACK)
    try:
        yield
    finally:
        threading.stack_size(0)


class NoClock(ExtenderServer):
    """Has a thread for a request, and none for its end, while `is_short`."""

    is_short = True

    def process_request_thread(self, request: Connection, client_address: object) -> None:
        with without_threads() if self.is_short else nullcontext():
            super().process_request_thread(request, client_address)


@contextmanager
def extender(url: str, kind: type[ExtenderServer] = ExtenderServer) -> Iterator[int]:
    """Its port."""
    with kind(ExtenderWanted(url, "127.0.0.1", 0, 60.0, 1.0)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    with serving(busy()) as url, extender(url) as port:
        yield port


def post(port: int, path: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def ask(port: int, path: str, told: object) -> object:
    status, said = post(port, path, json.dumps(told).encode())
    assert status == 200, said
    return json.loads(said)


def get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().status


def test_a_node_that_would_wait_too_much_is_filtered_out_with_the_reason(port: int) -> None:
    found = ask(port, "/filter", {"Pod": pod(), "Nodes": None, "NodeNames": NODES})
    assert isinstance(found, dict)
    assert (found["NodeNames"], found["Nodes"], found["Error"]) == (["empty", "unknown"], None, "")
    assert list(found["FailedNodes"]) == ["full"]
    assert "over 5%" in found["FailedNodes"]["full"]


def test_whole_nodes_come_back_whole(port: int) -> None:
    nodes = {"items": [{"metadata": {"name": name, "labels": {"of": name}}} for name in NODES]}
    found = ask(port, "/filter", {"pod": pod(), "nodes": nodes, "nodenames": None})
    assert isinstance(found, dict)
    assert (found["Nodes"], found["NodeNames"]) == ({"items": nodes["items"][1:]}, None)


def test_a_pod_is_never_without_a_node_for_the_sake_of_waiting(port: int) -> None:
    found = ask(port, "/filter", {"Pod": pod(), "NodeNames": ["full"]})
    assert isinstance(found, dict)
    assert (found["NodeNames"], found["FailedNodes"]) == (["full"], {})


def test_a_reservation_goes_only_where_it_fits(port: int) -> None:
    asked = {"Pod": pod("8", **{CPU: "whole", CPUS: "8"}), "NodeNames": ["full", "empty"]}
    found = ask(port, "/filter", asked)
    assert isinstance(found, dict)
    assert (found["NodeNames"], list(found["FailedNodes"])) == (["empty"], ["full"])


def test_each_container_of_a_pod_asks_for_what_its_annotation_says() -> None:
    two = pod("1", **{CPU: "exclusive", CPUS: "1.5"})
    spec = two["spec"]
    assert isinstance(spec, dict)
    spec["containers"] *= 2
    assert coming(two).ask == Ask("shop/web-7f9", 3000, CpuClass.EXCLUSIVE)


def test_sidecars_count_beside_the_containers_and_beside_who_starts_after_them() -> None:
    def initial(cpu: str, **more: str) -> dict[str, object]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    sidecar = initial("1", restartPolicy="Always")
    for first, cores in (
        ([initial("1")], 2),
        ([initial("3")], 3),
        ([sidecar], 3),
        ([sidecar, initial("3")], 4),
        ([initial("3"), sidecar, sidecar], 4),
    ):
        made = pod("2", **{CPU: "whole", CPUS: "1"})
        spec = made["spec"]
        assert isinstance(spec, dict)
        spec["initContainers"] = first
        found = coming(made)
        assert found.running_cores == cores
        assert found.ask is not None
        assert found.ask.millicores == 1000 * (1 + first.count(sidecar))


def test_the_extender_and_the_daemon_read_the_same_annotations() -> None:
    assert (CPU, CPUS) == (consent.CPU, consent.CPUS)


def test_the_emptier_a_node_the_higher_it_ranks(port: int) -> None:
    found = ask(port, "/prioritize", {"Pod": pod(), "NodeNames": NODES})
    assert found == [
        {"Host": "full", "Score": 0},
        {"Host": "empty", "Score": BEST},
        {"Host": "unknown", "Score": 5},
    ]


@pytest.mark.parametrize("illness", ["starting", "leads astray"])
def test_without_prometheus_every_node_may_and_none_is_better(illness: str) -> None:
    answers = busy()
    answers.illness = illness
    with serving(answers) as url, extender(url) as port:
        assert (get(port, "/healthz"), get(port, "/readyz")) == (200, 503)
        found = ask(port, "/filter", {"Pod": pod(), "NodeNames": NODES})
        assert isinstance(found, dict)
        assert found["NodeNames"] == NODES
        ranks = ask(port, "/prioritize", {"Pod": pod(), "NodeNames": NODES})
        assert isinstance(ranks, list)
        assert len({each["Score"] for each in ranks}) == 1


def test_it_is_ready_when_it_knows_a_fleet(port: int) -> None:
    assert (get(port, "/readyz"), get(port, "/healthz"), get(port, "/")) == (200, 200, 404)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b"null", b'{"Pod": {}}', b'{"Pod": 1, "NodeNames": ["a"]}', b"[" * 100_000],
)
def test_what_is_no_question_is_refused_and_it_goes_on(port: int, body: bytes) -> None:
    status, said = post(port, "/filter", body)
    assert (status, said.count(b"\n")) == (400, 1)
    assert get(port, "/healthz") == 200


def test_a_length_beyond_all_bounds_is_refused(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"POST /filter HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")
        assert client.makefile("rb").readline().split()[1] == b"413"


def test_bad_annotations_and_quantities_name_the_pod_or_the_text(port: int) -> None:
    for bad, word in (
        (pod(**{CPU: "mine"}), b"shop/web-7f9"),
        (pod(**{CPU: "whole"}), b"dasec.io/cpus"),
        (pod(**{CPU: "whole", CPUS: "0"}), b"of none"),
        (pod("2 cores"), b"'2 cores'"),
    ):
        status, said = post(port, "/filter", json.dumps({"Pod": bad, "NodeNames": []}).encode())
        assert status == 400
        assert word in said


def test_who_says_nothing_is_cut_off_and_others_are_served_meanwhile(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as silent:
        silent.sendall(b"POST /filter HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        assert get(port, "/healthz") == 200
        assert silent.recv(1) == b""


def hang_up_on(port: int, requests: int) -> None:
    for _ in range(requests):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client, suppress(ConnectionError):
            client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert client.recv(1) == b""


def is_alive(port: int) -> bool:
    try:
        return get(port, "/healthz") == 200
    except ConnectionError:
        return False


def test_once_threads_can_be_started_again_requests_are_answered_again(port: int) -> None:
    with without_threads():
        hang_up_on(port, 2 * CLIENTS)
    assert get(port, "/healthz") == 200


def test_a_request_whose_end_cannot_be_seen_to_is_dropped_and_leaves_its_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(busy()) as url, extender(url, NoClock) as port:
        hang_up_on(port, 2 * CLIENTS)
        monkeypatch.setattr(NoClock, "is_short", False)
        wait_for(lambda: is_alive(port))  # the last of them may not have ended yet


def test_an_address_or_a_url_that_cannot_be_is_one_line() -> None:
    listen = ["--prometheus", "http://p:9090", "--listen"]
    strange = ([*listen, f"127.0.0.1:{port}"] for port in ("²", "", "65536", "9" * 5000))
    for options in (["--prometheus", "x"], [*listen, "8888"], *strange):
        error = CliRunner().invoke(commands, ["fleet", "extender", *options]).exception
        assert isinstance(error, Refusal)
        assert (error.status, len(error.lines)) == (2, 1)


@given(
    fleets(), st.lists(st.sampled_from(["h0", "h1", "h2", "else"]), unique=True), st.sampled_from(["1", "9"])
)
def test_of_any_fleet_the_chosen_are_some_of_the_named_in_their_order(
    fleet: Sequence[FleetHost], nodes: list[str], cpu: str
) -> None:
    hosts = {each.name: each for each in fleet}
    for kind in ("shared", "exclusive", "whole"):
        new = coming(pod(cpu, **{CPU: kind, CPUS: cpu}))
        found = choose(nodes, hosts, new)
        assert [node for node in nodes if node not in found.failed] == list(found.nodes)
        assert found.nodes or kind != "shared" or not nodes
        assert all(0 <= score(node, hosts, new) <= BEST for node in nodes)


@given(st.from_regex(r"[0-9]{1,18}(\.[0-9]{1,18})?[numk]?", fullmatch=True))
def test_what_kubernetes_takes_for_cpus_is_a_quantity(text: str) -> None:
    assert quantity(text) >= 0


@given(st.from_regex(r"[^0-9].*|.*[^0-9numk]|", fullmatch=True))
def test_what_is_no_number_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadPod) as caught:
        quantity(text)
    assert "\n" not in str(caught.value)
