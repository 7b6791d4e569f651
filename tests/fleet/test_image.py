"""The Dockerfile, built for true; the manifests' pods run from what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guests.waiting import gone, wait_for

from .image import Builder
from .in_pod import ASKS, Daemon, engine, shipped
from .manifests import rendered
from .pod import OTHER_NAME, Pod

pytestmark = [pytest.mark.host, pytest.mark.engines, pytest.mark.slow]


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory, deb: Path) -> Iterator[Builder]:
    """One that has built it of our package."""
    dist = tmp_path_factory.mktemp("dist")
    shutil.copy(deb, dist)
    with Builder.opened(tmp_path_factory.mktemp("image")) as one:
        one.build(dist)
        yield one


@pytest.fixture(scope="module")
def image(builder: Builder) -> Path:
    return builder.save()


def test_the_image_is_the_command(builder: Builder) -> None:
    done = builder.run("--version")
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["dasec"]), done.stderr


def test_two_packages_in_one_folder_are_refused(builder: Builder, deb: Path, tmp_path: Path) -> None:
    for name in (deb.name, deb.name.replace("_", "_9", 1)):
        shutil.copy(deb, tmp_path / name)
    with pytest.raises(RuntimeError, match="more than one package, leave one of them"):
        builder.build(tmp_path)


@contextmanager
def managing(place: Path, image: Path) -> Iterator[tuple[Pod, Daemon]]:
    """A pod from the image, ready, and its daemon, which has changed the container that opts in."""
    with engine(place, image=image) as pod:
        daemon = Daemon(pod, place, pod.start_other(ASKS), shipped())
        wait_for(pod.is_ready)
        yield pod, daemon


def test_the_daemon_of_the_image_manages_a_pod_and_leaves_it_as_it_was_when_it_is_killed(
    image: Path, tmp_path: Path
) -> None:
    with managing(tmp_path, image) as (pod, daemon):
        wait_for(lambda: pod.status()["periods"] > 1)
        can = pod.status()["capabilities"]
        assert (can["wake_edges"], can["nice"]) == (True, True), can
        assert "counters are read from /proc" not in pod.said()
        pod.kill()
        wait_for(lambda: gone(daemon.keeper))
        assert daemon.knobs() == daemon.before


def test_when_the_pod_that_it_manages_is_killed_it_goes_on_and_nothing_is_left(
    image: Path, tmp_path: Path
) -> None:
    with managing(tmp_path, image) as (pod, daemon):
        pod.kill(OTHER_NAME)
        wait_for(lambda: pod.status()["workloads"] == [])
        assert pod.is_ready()
        verified = pod.execute("/usr/bin/dasec", "verify")
        assert (verified.returncode, verified.stdout.partition(":")[0]) == (0, "clean"), verified
        pod.stop()
        wait_for(lambda: gone(daemon.keeper))


def test_nodes_are_told_by_the_same_image_without_any_right(builder: Builder) -> None:
    (pod,) = (each["spec"]["template"]["spec"] for each in rendered("cores") if each["kind"] == "Deployment")
    (container,) = pod["containers"]
    options = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    user = str(pod["securityContext"]["runAsUser"])
    words = ("fleet", "cores", "--prometheus", "http://127.0.0.1:9")
    assert (container["command"], container["args"][:2]) == (["/usr/bin/dasec"], [*words[:2]])
    done = builder.run(*words, options=(*options, "--user", user))
    assert done.returncode == 1
    assert "http://127.0.0.1:9" in done.stderr
    assert len(done.stderr.splitlines()) == 1
