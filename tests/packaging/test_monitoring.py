"""Alert rules and dashboard: Prometheus' own tool reads them, and the metrics that they name are ours."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dasec.model import Change, Knob, Limits, Outcome, OwnLimit, Result
from tests.conftest import REPOSITORY, refuse

from ..unit.service.periods import busy_history
from ..unit.service.test_metrics import renamed, text_of

HOST_RULES = REPOSITORY / "packaging/prometheus/dasec.rules.yml"
FLEET_RULES = REPOSITORY / "fleet/prometheus/dasec-fleet.rules.yml"
PATTERN = REPOSITORY / "fleet/prometheus/prometheus.yml"
DASHBOARD = REPOSITORY / "packaging/grafana/dasec.json"
DOCS = REPOSITORY / "docs/metrics.md"
FLEET_DOCS = REPOSITORY / "docs/fleet.md"
RULES = pytest.mark.parametrize(
    "rules", [pytest.param(HOST_RULES, id="host"), pytest.param(FLEET_RULES, id="fleet")]
)
NAME = re.compile(r"\b(?:dasec|libvirt_domain)_[a-z_]+")
RECORDED = re.compile(r"\bdasec:[a-z0-9_:]+")
OF_A_VCPU = re.compile(r"^(dasec|libvirt_domain)_vcpu_")
GRID_COLUMNS = 24


def promtool(*arguments: str | Path, given: str | None = None) -> str:
    """What promtool says; fails where it finds fault."""
    if shutil.which("promtool") is None:
        refuse("needs promtool (Debian's package prometheus)")
    command = ["promtool", *map(str, arguments)]
    done = subprocess.run(command, input=given, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exposed() -> str:
    """All families, each with a sample."""
    (entry,) = renamed(busy_history(1), "CPU {}/KVM")
    period = entry.period
    vcpu = period.workloads[0].vcpus[0].id
    chained = {who: used._replace(chain_ns=1) for who, used in period.usage.items()}
    result = Result(Change(vcpu, Knob.WEIGHT, 1, 2, "tsa.raise"), Outcome.APPLIED)
    limits = {one.name: Limits(1_000_000, 0, 1, {vcpu: OwnLimit(500_000, 1)}) for one in period.workloads}
    seen = replace(period, usage=chained, limits=limits)
    return text_of([entry._replace(period=seen, results=(result,))])


@pytest.fixture(scope="module")
def names(exposed: str) -> set[str]:
    """Every name that a query may use."""
    return {sample.name for family in text_string_to_metric_families(exposed) for sample in family.samples}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def alerts(rules: Path) -> list[str]:
    return re.findall(r"- alert: (\w+)", read(rules))


def recorded(rules: Path) -> list[str]:
    return re.findall(r"- record: (\S+)", read(rules))


def queries(rules: Path) -> str:
    """The rules' text without comments and annotations."""
    return "\n".join(
        line for line in read(rules).splitlines() if not re.match(r"\s*(#|summary:|- (record|alert):)", line)
    )


def expressions() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def test_promtool_finds_no_fault_with_the_metrics(exposed: str) -> None:
    promtool("check", "metrics", given=exposed)


@RULES
def test_promtool_loads_every_rule(rules: Path) -> None:
    count = len(alerts(rules)) + len(recorded(rules))
    assert count >= 10
    assert f"SUCCESS: {count} rules found" in promtool("check", "rules", rules)


@RULES
def test_every_alert_is_quiet_on_a_well_host_and_fires_where_it_should(rules: Path) -> None:
    cases = rules.with_suffix(".test.yml")
    promtool("test", "rules", cases)
    for alert in alerts(rules):
        assert len(re.findall(rf"alertname: {alert}\b", read(cases))) >= 2, alert
    for name in recorded(rules):
        assert re.search(rf"- expr: {name}( > 0)?$", read(cases), re.MULTILINE), name


@RULES
def test_the_rules_name_only_metrics_that_exist(rules: Path, names: set[str]) -> None:
    used = set(NAME.findall(queries(rules)))
    assert used
    assert used - names == set()
    assert set(RECORDED.findall(queries(rules))) - set(recorded(rules)) == set()


def test_the_numbers_of_a_fleet_need_no_series_of_a_single_vcpu(names: set[str]) -> None:
    """So a Prometheus of many hosts may drop those, as the pattern does."""
    dropped = re.search(r"regex: (\S+)\n\s+action: drop", read(PATTERN))
    assert dropped is not None
    assert {name for name in names if re.fullmatch(dropped[1], name)} == {
        name for name in names if OF_A_VCPU.match(name)
    }
    assert not [name for name in NAME.findall(queries(FLEET_RULES)) if OF_A_VCPU.match(name)]


def test_the_page_of_fleets_says_how_many_series_there_are() -> None:
    (entry,) = renamed(busy_history(1), "CPU {}/KVM")
    families = text_string_to_metric_families(text_of([entry]))
    found = [sample for family in families for sample in family.samples]
    left = [sample for sample in found if not OF_A_VCPU.match(sample.name)]
    workloads = sum("workload" in sample.labels for sample in left)
    sizes = [len(workload.vcpus) for workload in entry.period.workloads]
    told = re.search(r"left is about (\d+) series a host and (\d+) a workload", read(FLEET_DOCS))
    assert told is not None
    assert len(left) - workloads == pytest.approx(int(told[1]), rel=0.1)
    assert workloads == int(told[2]) * len(sizes)
    one = (len(found) - len(left)) / sum(sizes)
    assert one == pytest.approx(20, rel=0.1)
    assert 256 * one == pytest.approx(5400, rel=0.02)
    assert "about twenty series" in read(FLEET_DOCS)
    assert "256 vCPUs has 5400" in read(FLEET_DOCS)


def test_prometheus_takes_the_pattern_with_the_rules_of_hosts_and_fleets() -> None:
    assert "SUCCESS: 2 rule files found" in promtool("check", "config", PATTERN)


def test_the_docs_explain_every_alert_and_every_metric(names: set[str]) -> None:
    text = read(DOCS)
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert {each for each in (*alerts(HOST_RULES), *families) if f"`{each}`" not in text} == set()


def test_the_page_of_fleets_explains_every_alert_and_every_recorded_number() -> None:
    text = read(FLEET_DOCS)
    assert {
        each for each in (*alerts(FLEET_RULES), *recorded(FLEET_RULES)) if f"`{each}`" not in text
    } == set()


def test_the_dashboard_names_only_metrics_that_exist(names: set[str]) -> None:
    text = read(DASHBOARD)
    assert {name for name in NAME.findall(text) if not name.endswith("_")} - names == set()
    assert set(RECORDED.findall(text)) - set(recorded(FLEET_RULES)) == set()


def test_promtool_reads_every_query_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expr.replace("$__rate_interval", "5m")}
        for number, expr in enumerate(expressions())
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML, too
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", file)


def test_the_dashboard_has_the_form_that_grafana_loads() -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert (board["uid"], board["title"]) == ("dasec", "DASEC")
    assert board["schemaVersion"] >= 36, "from then on a data source is an object"
    assert "id" not in board, "an id belongs to one Grafana's database"
    variables = {variable["name"] for variable in board["templating"]["list"]}
    assert variables == {"datasource", "instance", "workload"}
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    covered: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["type"] == "timeseries"
        assert all(panel[key] for key in ("title", "description"))
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C"][: len(panel["targets"])]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & covered
        assert max(x for x, _ in cells) < GRID_COLUMNS
        covered |= cells
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= {*variables, "__rate_interval"}
