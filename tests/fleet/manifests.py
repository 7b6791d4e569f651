"""The objects that kustomize makes of `fleet/kubernetes`."""

from __future__ import annotations

import copy
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import refuse

FOLDER = Path(__file__).parents[2] / "fleet/kubernetes"


@cache
def rendered(variant: str) -> tuple[dict[str, Any], ...]:
    """All objects of one variant, as `kubectl apply -k` would send them."""
    if shutil.which("kubectl") is None:
        refuse("needs kubectl of 1.21 or later")
    done = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / variant)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def daemonset_of(variant: str) -> dict[str, Any]:
    """The one DaemonSet among them."""
    (found,) = (each for each in rendered(variant) if each["kind"] == "DaemonSet")
    return found


def pod_of(variant: str) -> dict[str, Any]:
    """The `spec` of its pods; a copy."""
    return copy.deepcopy(dict(daemonset_of(variant)["spec"]["template"]["spec"]))


def container_of(variant: str) -> dict[str, Any]:
    """The daemon's container; a copy."""
    (found,) = pod_of(variant)["containers"]
    return dict(found)
