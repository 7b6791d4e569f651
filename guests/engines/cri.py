"""Pods by containerd's CRI, driven as kubelet drives it: gRPC at containerd's socket.

The numbers are those of the fields in Kubernetes' runtime.v1 (cri-api).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import Popen

import grpc

from guests.engines.engine import NO_ANNOTATIONS, PROGRAM, with_image
from guests.engines.image import IMAGE
from guests.engines.place import Place
from guests.engines.wire import Message, encode, first_text, texts
from guests.waiting import wait_for

SOCKET = "run/containerd/containerd.sock"
CONFIG = f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{IMAGE}"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
pod_annotations = ["dasec.io/*"]
container_annotations = ["dasec.io/*"]
"""
"""Without the last two lines no annotation reaches a container (docs/containers.md)."""

NAMESPACE, APP = "default", "app"
ON_NODE = 2
"""A namespace that is the node's, not the pod's: NamespaceMode.NODE."""

PATIENCE_S = 120.0


@dataclass(slots=True)
class _Pod:
    sandbox: str
    config: Message
    container: str
    attempt: int
    annotations: Mapping[str, str]


class Cri:
    """containerd with its CRI, without kubelet. A container is the only one of its pod, beside the pause
    container; its name is the pod's."""

    def __init__(self, place: Place) -> None:
        self.place = place
        (place.root / "etc/containerd").mkdir(exist_ok=True)
        (place.root / "etc/containerd/config.toml").write_text(CONFIG)
        self._pods: dict[str, _Pod] = {}
        self._daemon = self._start_daemon()
        place.say("/usr/bin/ctr", "--namespace", "k8s.io", "images", "import", with_image(place))

    def called(self, name: str) -> str:
        """See Engine."""
        return f"k8s:{NAMESPACE}/{name}/{APP}"

    def start(self, name: str, annotations: Mapping[str, str] = NO_ANNOTATIONS) -> None:
        """See Engine."""
        config: Message = {
            1: {1: name, 2: f"uid-{name}", 3: NAMESPACE},
            7: texts(annotations),
            8: {1: f"/kubepods/burstable/poduid-{name}", 2: {1: {1: ON_NODE, 2: ON_NODE, 3: ON_NODE}}},
        }
        sandbox = first_text(self.ask("RunPodSandbox", {1: config}), 1)
        self._pods[name] = _Pod(sandbox, config, "", 0, annotations)
        self._start(name)

    def pid(self, name: str) -> int:
        """See Engine."""
        return self._pid(self._pods[name].container)

    def pause_pid(self, name: str) -> int:
        """The process of the pod's pause container."""
        return self._pid(self._pods[name].sandbox)

    def execute(self, name: str) -> None:
        """See Engine."""
        shell = ["/bin/sh", "-c", f"{' '.join(PROGRAM)} >/dev/null 2>&1 &"]
        self.ask("ExecSync", {1: self._pods[name].container, 2: shell, 3: 10})

    def resize(self, name: str, *, shares: int, quota_us: int) -> None:
        """As kubelet does when a pod's CPU request and limit change in place."""
        resources: Message = {1: 100_000, 2: quota_us, 3: shares}
        self.ask("UpdateContainerResources", {1: self._pods[name].container, 2: resources})

    def restart(self, name: str) -> None:
        """As kubelet does: another container in the same pod."""
        self._end(name)
        self._pods[name].attempt += 1
        self._start(name)

    def remove(self, name: str) -> None:
        """See Engine."""
        self._end(name)
        sandbox = self._pods.pop(name).sandbox
        self.ask("StopPodSandbox", {1: sandbox})
        self.ask("RemovePodSandbox", {1: sandbox})

    def restart_daemon(self) -> None:
        """As after a crash; the shims live on."""
        self._daemon.kill()
        self._daemon.wait()
        self._daemon = self._start_daemon()

    def ask(self, method: str, request: Message) -> bytes:
        """One call."""
        with grpc.insecure_channel(f"unix://{self.place.root / SOCKET}") as channel:
            call = channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")
            answer: bytes = call(encode(request), timeout=PATIENCE_S, wait_for_ready=True)
        return answer

    def _start(self, name: str) -> None:
        pod = self._pods[name]
        config: Message = {
            1: {1: APP, 2: pod.attempt},
            2: {1: IMAGE},
            3: PROGRAM,
            10: texts(pod.annotations),
            15: {1: {3: 512}, 2: {3: {1: ON_NODE, 2: 1, 3: ON_NODE}}},
        }
        request: Message = {1: pod.sandbox, 2: config, 3: pod.config}
        pod.container = first_text(self.ask("CreateContainer", request), 1)
        self.ask("StartContainer", {1: pod.container})

    def _end(self, name: str) -> None:
        container = self._pods[name].container
        wait_for(lambda: self._is_removed(container))

    def _is_removed(self, container: str) -> bool:
        """As kubelet does: asked again where that fails, because somebody else killed it at that moment."""
        try:
            self.ask("StopContainer", {1: container})
            self.ask("RemoveContainer", {1: container})
        except grpc.RpcError:
            return False
        return True

    def _pid(self, container: str) -> int:
        state = self.place.root / "run/containerd/runc/k8s.io" / container / "state.json"
        return int(json.loads(state.read_text())["init_process_pid"])

    def _start_daemon(self) -> Popen[bytes]:
        started = self.place.spawn("/usr/bin/containerd")
        wait_for(
            lambda: started.poll() is not None or self.place.answers("/usr/bin/ctr", "namespaces", "list")
        )
        return started
