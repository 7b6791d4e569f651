"""kube-scheduler's own code asks our extender. It is built from hundreds of modules, so this is for the long
run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest

from ..conftest import refuse
from .prometheus_server import serving
from .test_extender import NODES, busy, extender, pod

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "kube_scheduler/main.go"
MINOR = "34.3"
"""Of Kubernetes 1 and, for its parts, of 0."""

PARTS = """api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider
cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api cri-client
csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator
kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission
sample-apiserver"""
"""Kubernetes names its own parts as v0.0.0: whoever imports it says which."""

WAYS = ["by name", "whole"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that asks as kube-scheduler does."""
    go = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
    if go is None:
        refuse("needs Go, to build kube-scheduler's client")
    place = tmp_path_factory.mktemp("kube_scheduler")
    parts = "".join(f"replace k8s.io/{part} => k8s.io/{part} v0.{MINOR}\n" for part in PARTS.split())
    module = f"module extender\ngo 1.24.0\nrequire k8s.io/kubernetes v1.{MINOR}\n{parts}"
    (place / "go.mod").write_text(module, encoding="utf-8")
    shutil.copy(SOURCE, place)
    for command in (["mod", "tidy"], ["build", "-o", "client", "."]):
        done = subprocess.run([str(go), *command], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return place / "client"


def said(client: Path, url: str, asking: object, *nodes: str) -> dict[str, dict[str, object]]:
    """By each of the ways to name nodes."""
    command = [str(client), url, json.dumps(asking), *nodes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_it_understands_who_is_left_who_failed_and_how_each_ranks(client: Path, way: str) -> None:
    with serving(busy()) as url, extender(url) as port:
        found = said(client, f"http://127.0.0.1:{port}", pod(), *NODES)[way]
    assert (found["FilterError"], found["RankError"]) == ("", "")
    assert found["Nodes"] == ["empty", "unknown"]
    assert list(cast(dict[str, str], found["Failed"])) == ["full"]
    assert found["Scores"] == {"full": 0, "empty": 10, "unknown": 5}


@pytest.mark.parametrize("way", WAYS)
def test_a_pod_that_cannot_be_read_is_an_error_to_it_and_not_an_empty_cluster(client: Path, way: str) -> None:
    with serving(busy()) as url, extender(url) as port:
        found = said(client, f"http://127.0.0.1:{port}", pod(**{"dasec.io/cpu": "mine"}), *NODES)[way]
    assert "400" in str(found["FilterError"])
    assert found["Nodes"] == []


@pytest.mark.parametrize("way", WAYS)
def test_without_prometheus_it_keeps_all_nodes_alike(client: Path, way: str) -> None:
    answers = busy()
    answers.illness = "starting"
    with serving(answers) as url, extender(url) as port:
        found = said(client, f"http://127.0.0.1:{port}", pod(), *NODES)[way]
    assert found["Nodes"] == NODES
    assert len(set(cast(dict[str, int], found["Scores"]).values())) == 1
