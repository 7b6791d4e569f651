"""What `kubectl apply -k` would send: valid for Kubernetes, with the least that the daemon needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from dasec.config.config import load

from .manifests import FOLDER, container_of, daemonset_of, rendered

VARIANTS = ("base", "stable", "canary", "cores")
KUBERNETES = ("1.29", "1.34", "1.37")
"""Old, between, and the newest that kubernetes-validate knows."""


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_is_valid(variant: str, version: str) -> None:
    for each in rendered(variant):
        kubernetes_validate.validate(each, version, strict=True)


def test_the_schema_refuses_what_is_misspelt() -> None:
    wrong = json.loads(json.dumps(daemonset_of("base")))
    wrong["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[-1], strict=True)


def test_its_configuration_is_one_that_the_daemon_takes_and_lets_pods_opt_in(tmp_path: Path) -> None:
    (config,) = (each for each in rendered("base") if each["kind"] == "ConfigMap")
    file = tmp_path / "dasec.toml"
    file.write_text(config["data"]["dasec.toml"])
    told = load(file)
    assert told.host.keeper_cgroup
    assert told.containers.annotations
    assert told.workload == (), "nobody is managed who did not ask for it"


def test_canaries_and_all_others_share_no_node_and_no_pod() -> None:
    canary, stable = (daemonset_of(one)["spec"] for one in ("canary", "stable"))
    assert canary["selector"] != stable["selector"]
    (label,) = canary["template"]["spec"]["nodeSelector"].items()
    affinity = stable["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": label[0], "operator": "NotIn", "values": [label[1]]}]


def test_the_daemon_may_do_nothing_that_the_service_may_not_and_what_leaves_the_namespace_is_given_up() -> (
    None
):
    service = Path(__file__).parents[2] / "packaging/systemd/dasec.service"
    (line,) = re.findall(r"^CapabilityBoundingSet=(.*)$", service.read_text(), re.MULTILINE)
    container = container_of("base")
    (kept,) = (word for word in container["command"] if word.startswith("--caps="))
    keeps = set(kept.removeprefix("--caps=").removesuffix("=ep").upper().split(","))
    assert keeps < set(line.split())
    may: dict[str, Any] = container["securityContext"]
    assert {f"CAP_{name}" for name in may["capabilities"]["add"]} == keeps | {
        "CAP_SYS_ADMIN",
        "CAP_SYS_PTRACE",
    }
    assert may["capabilities"]["drop"] == ["ALL"]
    assert may["allowPrivilegeEscalation"] is False
    assert may["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("variant", ["base", "stable", "canary"])
def test_it_sees_the_hosts_processes_and_neither_its_network_nor_the_api_server(variant: str) -> None:
    pod = daemonset_of(variant)["spec"]["template"]["spec"]
    assert pod["hostPID"] is True
    assert {"hostNetwork", "hostIPC", "serviceAccountName"} & pod.keys() == set()
    assert pod["automountServiceAccountToken"] is False
    assert {each["kind"] for each in rendered(variant)} == {"DaemonSet", "ConfigMap"}


def test_the_one_pod_that_may_tell_nodes_anything_may_do_nothing_else() -> None:
    objects = {each["kind"]: each for each in rendered("cores")}
    assert objects["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
    ]
    (subject,) = objects["ClusterRoleBinding"]["subjects"]
    account = objects["ServiceAccount"]["metadata"]
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert pod["serviceAccountName"] == account["name"]
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["args"][:2] == ["fleet", "cores"]


def test_the_image_is_of_our_package() -> None:
    assert re.search(r"^COPY dasec_\*\.deb ", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
