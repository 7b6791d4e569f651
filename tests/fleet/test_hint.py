"""`dasec fleet hint` asks servers that answer, and such that do not."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dasec.commands.cli import commands
from dasec.commands.fleet import virsh
from dasec.commands.fleet_numbers import OF_HOSTS, OF_WORKLOADS, by_place, hosts_of
from dasec.commands.prometheus import Sample
from dasec.errors import Refusal
from dasec.lab.kit.process import free_port
from dasec.placement import AdvisedMove, Fit
from tests.conftest import REPOSITORY, refuse

from .prometheus_server import Answers, Series, labels, serving

WAIT_S = 60.0


def host(
    name: str, cores: int, wait: float, **workloads: tuple[float, float, float, float]
) -> dict[Series, str]:
    """The recorded numbers of a host and of its workloads: vCPUs, running, waiting, blame."""
    told: dict[Series, str] = {
        ("dasec_cores", name, ""): str(cores),
        ("dasec:host_wait:p90_10m", name, ""): str(wait),
    }
    for workload, numbers in workloads.items():
        told |= {
            (metric, name, workload): str(each) for metric, each in zip(OF_WORKLOADS, numbers, strict=True)
        }
    return told


def steady() -> Answers:
    """Two hosts, the same since a day: `a` waits, mostly for web; `b` has room."""
    now = host("a:9753", 8, 0.25, web=(8, 3, 0.5, 0.75), batch=(8, 3, 1.5, 0.25)) | host("b:9753", 16, 0.0)
    running = {each: value for each, value in now.items() if each[0] == "dasec:workload_running_cores"}
    return Answers(now, dict(running), dict(running))


def ask(url: str, *options: str) -> Result:
    return CliRunner().invoke(commands, ["fleet", "hint", "--prometheus", url, *options])


def named(series: Series) -> str:
    """Its labels as Prometheus' text has them."""
    return ",".join(f'{name}="{of}"' for name, of in labels(series).items() if name != "__name__")


def refused(url: str, *options: str) -> tuple[int, str]:
    """Status and the one line."""
    error = ask(url, *options).exception
    assert isinstance(error, Refusal), error
    (line,) = error.lines
    return error.status, line


@pytest.fixture
def fleet() -> Iterator[tuple[Answers, str]]:
    answers = steady()
    with serving(answers) as url:
        yield answers, url


def test_a_table_of_hosts_and_one_move_with_its_effect(fleet: tuple[Answers, str]) -> None:
    shown = ask(fleet[1]).output.splitlines()
    assert shown == [
        "host    cores  vCPUs/core   wait    free  most blame",
        "a:9753      8        2.00  25.0%     0.0  web 0.75",
        "b:9753     16        0.00   0.0%    16.0  -",
        "",
        "Move web from a:9753 to b:9753. Simulated waits:",
        "  a:9753  25.0% -> 3.7%",
        "  b:9753   0.0% -> 0.0%",
        "  web     14.3% -> 0.0%",
        "  virsh --connect qemu+ssh://a/system migrate --live --persistent --domain web --desturi"
        " qemu+ssh://b/system",
        "Not looked at: memory, network, NUMA, licences, what must be apart, work that is not managed.",
    ]


def test_json_says_the_same(fleet: tuple[Answers, str]) -> None:
    told = json.loads(ask(fleet[1], "--json").output)
    assert [each["name"] for each in told["hosts"]] == ["a:9753", "b:9753"]
    assert told["hosts"][0]["blame_cores"] == {"web": 0.75, "batch": 0.25}
    assert (told["move"]["workload"], told["move"]["target"]) == ("web", "b:9753")
    assert told["left_out"] == {}


def test_what_a_workload_left_within_a_day_is_no_target(fleet: tuple[Answers, str]) -> None:
    answers, url = fleet
    answers.day["dasec:workload_running_cores", "b:9753", "web"] = "1"
    assert "No move" in ask(url).output


def test_hosts_rest_after_a_move(fleet: tuple[Answers, str]) -> None:
    answers, url = fleet
    answers.before["dasec:workload_running_cores", "b:9753", "other"] = "1"
    shown = ask(url).output
    assert "b:9753     16        0.00   0.0%    16.0  -  (rests: something came or went)" in shown
    assert "No move" in shown


def test_what_is_kept_stays_and_a_reservation_must_fit(fleet: tuple[Answers, str]) -> None:
    _, url = fleet
    assert "No move" in ask(url, "--keep", "w*").output
    assert "No move" in ask(url, "--reservation", "web=17:whole").output
    assert "Move web" in ask(url, "--reservation", "web=8:whole").output


def test_a_host_without_all_numbers_is_named_and_left_out(fleet: tuple[Answers, str]) -> None:
    answers, url = fleet
    answers.now |= host("c", 0, 0.5)
    answers.now["dasec:host_wait:p90_10m", "d", ""] = "NaN"
    answers.now["dasec_cores", "d", ""] = "4"
    shown = ask(url).output.splitlines()
    assert "c: left out: has no core yet" in shown
    assert "d: left out: has no dasec:host_wait:p90_10m" in shown


@pytest.mark.parametrize("cores", [8193, 1e12, 1e300])
def test_a_host_with_more_cores_than_any_has_is_named_and_left_out(cores: float) -> None:
    now = steady().now | {("dasec_cores", "b:9753", ""): str(cores)}
    told = by_place([Sample(labels(series), float(value)) for series, value in now.items()])
    hosts, left_out = hosts_of(told, (), ())
    assert [each.name for each in hosts] == ["a:9753"]
    assert left_out == {"b:9753": "number of cores that can be"}


def test_a_name_with_shell_and_terminal_in_it_does_neither(fleet: tuple[Answers, str]) -> None:
    answers, url = fleet
    evil = "$(reboot);\x1b[2J web"
    for held in (answers.now, answers.before, answers.day):
        for each in [each for each in held if each[2] == "web"]:
            held[each[0], each[1], evil] = held.pop(each)
    shown = ask(url).output
    assert "--domain '$(reboot);\N{REPLACEMENT CHARACTER}[2J web' --desturi" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("wrong", "said"), [("", "virDomainMigrate"), ("--lively", "support option --lively")]
)
def test_virsh_itself_takes_the_line_and_asks_its_driver_to_migrate(wrong: str, said: str) -> None:
    """libvirt's own driver for tests has a domain of the name test, and migrates nothing."""
    if shutil.which("virsh") is None:
        refuse("needs virsh (Debian's package libvirt-clients)")
    move = AdvisedMove("test", "a:9753", "b:9753", (0.3, 0.1), (0.0, 0.0), (0.1, 0.0), 1.0, Fit())
    line = virsh(move)
    for host in ("a", "b"):
        line = line.replace(f"qemu+ssh://{host}/system", "test:///default")
    done = _ended([*shlex.split(line), *wrong.split()])
    assert done.returncode == 1
    assert said in done.stderr


def test_a_name_of_a_host_stays_one_in_the_line_for_virsh() -> None:
    """libvirt runs what `command=` in such a URI names."""
    source, target = "[fd00::1]:9753", "x/system?command=/tmp/evil&y"
    move = AdvisedMove("web", source, target, (0.3, 0.1), (0.0, 0.0), (0.1, 0.0), 1.0, Fit())
    words = shlex.split(virsh(move))
    assert words[words.index("--connect") + 1] == "qemu+ssh://[fd00::1]/system"
    assert words[-1] == "qemu+ssh://x%2Fsystem%3Fcommand%3D%2Ftmp%2Fevil%26y/system"


def _ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    """What the first of some attempts said that ended: on a busy machine one in five virsh hangs with this
    driver (libvirt 9.0), whatever it is told."""
    for _ in range(8):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, capture_output=True, text=True, check=False, timeout=15)
    raise AssertionError(f"never ended: {shlex.join(command)}")


@pytest.mark.parametrize(
    "url",
    [
        *("b:9090", "file:///etc/passwd", "http://", "http://h:x", "http://u@h", ""),
        *("http://a..b:9090", f"http://{'a' * 70}.b:9090", "http://127.0.0.1:²"),
    ],
)
def test_a_url_that_is_none_is_wrong_usage(url: str) -> None:
    assert refused(url) == (2, f"--prometheus: {url}: write it as http://HOST:9090")


def test_an_empty_prometheus_is_told_how_to_mend_it() -> None:
    with serving(Answers()) as url:
        assert refused(url) == (
            1,
            f"{url}: records no host's numbers (none at all): load dasec-fleet.rules.yml there,"
            " wait ten minutes",
        )


def test_a_server_that_is_not_there() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert refused(url) == (1, f"{url}: cannot be asked (Connection refused): check address and port")


@pytest.mark.parametrize("illness", ["silent", "drips"])
def test_a_server_that_does_not_answer_in_time_gives_one_line(
    fleet: tuple[Answers, str], illness: str
) -> None:
    answers, url = fleet
    answers.illness = illness
    line = "no answer within 0.5 s: try again, or give it more by --timeout"
    assert refused(url, "--timeout", "0.5") == (1, f"{url}: {line}")


@pytest.mark.parametrize(
    ("illness", "line"),
    [
        ("other", "answers, but not as Prometheus does: check address and path"),
        ("refuses", "too many samples: is it a Prometheus?"),
        ("starting", "answers 503 Service Unavailable: is it a Prometheus?"),
        ("breaks off", "broke off its answer: try again"),
        ("leads astray", "leads to an address that is none: is it a Prometheus?"),
    ],
)
def test_a_server_that_is_ill_gives_one_line(fleet: tuple[Answers, str], illness: str, line: str) -> None:
    answers, url = fleet
    answers.illness = illness
    assert refused(url) == (1, f"{url}: {line}")


def test_every_number_that_is_read_is_recorded_or_exported() -> None:
    rules = (REPOSITORY / "fleet/prometheus/dasec-fleet.rules.yml").read_text()
    for name in (*OF_HOSTS, *OF_WORKLOADS):
        assert f"record: {name}\n" in rules or f"({name})" in rules, name


RUNNING = "dasec:workload_running_cores"
MINUTE_S, HOUR_S = 60, 3600
MOVED = "Move web from a:9753 to b:9753"


@pytest.mark.parametrize(
    ("who", "from_s", "to_s", "says"),
    [
        ("web", 27 * HOUR_S, 26 * HOUR_S, MOVED),
        ("web", 21 * HOUR_S, 20 * HOUR_S, "No move"),
        ("other", HOUR_S, 15 * MINUTE_S, "(rests: something came or went)"),
        ("other", 3 * HOUR_S, 2 * HOUR_S, MOVED),
    ],
    ids=[
        "it left the target more than a day ago",
        "it left the target within the day",
        "another left the target within half an hour",
        "another left the target before that",
    ],
)
def test_a_real_prometheus_knows_what_was_before(
    tmp_path: Path, who: str, from_s: int, to_s: int, says: str
) -> None:
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        refuse("needs prometheus (Debian's package of that name)")
    told = [(series, value, HOUR_S, 0) for series, value in steady().now.items()]
    told.append(((RUNNING, "b:9753", who), "1", from_s, to_s))
    with recorded(tmp_path, told) as url:
        until = time.monotonic() + WAIT_S
        while (done := ask(url)).exception is not None and time.monotonic() < until:
            time.sleep(0.2)
    assert says in done.output


@contextlib.contextmanager
def recorded(place: Path, told: list[tuple[Series, str, int, int]]) -> Iterator[str]:
    """The URL of one that holds each series from so many seconds ago to so many, a value a minute."""
    now = time.time()
    lines = [
        f"{series[0]}{{{named(series)}}} {value} {now - age_s:.0f}"
        for series, value, from_s, to_s in sorted(told)
        for age_s in range(from_s, to_s - 1, -MINUTE_S)
    ]
    (place / "past").write_text("\n".join([*lines, "# EOF", ""]))
    (place / "empty.yml").write_text("{}\n")
    backfill = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "past", "data"]
    subprocess.run(backfill, cwd=place, check=True, capture_output=True)
    url = f"http://127.0.0.1:{free_port()}"
    command = ["prometheus", "--config.file=empty.yml", "--storage.tsdb.path=data"]
    command.append(f"--web.listen-address={url.removeprefix('http://')}")
    with (place / "log").open("w") as log, subprocess.Popen(command, cwd=place, stderr=log) as run:
        try:
            yield url
        finally:
            run.terminate()
            run.wait()
