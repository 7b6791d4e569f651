"""What of an installation of TailBench goes into a guest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.drivers.tailbench_apps import APPLICATIONS
from experiments.places.counted.installed import VECTORS, Installed
from experiments.places.counted.kernels import or_refuse
from guests.built import HostCannotError

from .drivers.faketailbench import install

MODEL = "sphinx-install/share/pocketsphinx/model/en-us"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With masstree, and img-dnn with its inputs."""
    folder = install(tmp_path / "tailbench")
    monkeypatch.setenv("TAILBENCH_DIR", str(folder))
    (folder / "configs.sh").write_text(f"DATA_ROOT={tmp_path}/data\n")
    for name in (
        "data/img-dnn/models/model.xml",
        "data/img-dnn/mnist/digits",
        "tailbench/img-dnn/img-dnn_integrated",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (folder / "img-dnn/img-dnn_integrated").chmod(0o755)
    return folder


def test_applications_and_their_inputs_lie_as_in_an_installation_and_start_in_their_seats(
    root: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    Installed.of(("masstree", "img-dnn")).copy(tree, "seated PROGRAM")
    inside, real = tree / "programs/tailbench", tree / "programs/tailbench-programs"
    assert (inside / "masstree/mttest_integrated").read_text() == (
        f"seated {VECTORS} /programs/tailbench-programs/masstree/mttest_integrated"
    )
    assert (real / "masstree/mttest_integrated").read_bytes() == (
        root / "masstree/mttest_integrated"
    ).read_bytes()
    assert (inside / "tailbench.inputs/img-dnn/models/model.xml").exists()
    assert (inside / "tailbench.inputs/img-dnn/mnist/digits").exists()
    assert not (inside / "masstree/lats.bin").exists()


def test_other_programs_or_inputs_are_another_guest(root: Path, tmp_path: Path) -> None:
    found = Installed.of(("masstree", "img-dnn"))
    contents = {b"".join(found.contents())}
    for file in (root / "masstree/mttest_integrated", tmp_path / "data/img-dnn/mnist/digits"):
        file.write_text("other")
        contents.add(b"".join(found.contents()))
    assert len(contents) == 3


def test_an_application_has_its_own_shared_libraries_beside_it(root: Path, tmp_path: Path) -> None:
    data, libraries = tmp_path / "data/xapian", root / "xapian/xapian-core-1.2.13/install/lib"
    for folder in (data / "wiki", libraries):
        folder.mkdir(parents=True)
    (data / "terms.in").write_text("word\n")
    (root / "xapian/xapian_integrated").write_text("xapian")
    (root / "xapian/xapian_integrated").chmod(0o755)
    without = b"".join(Installed.of(("xapian",)).contents())
    for name in ("libxapian.so.22.6.0", "libxapian.a"):
        (libraries / name).write_text(name)
    (libraries / "libxapian.so.22").symlink_to("libxapian.so.22.6.0")
    found = Installed.of(("xapian",))
    found.copy(tmp_path / "tree", "seated PROGRAM")
    beside = tmp_path / "tree/programs/tailbench/xapian" / (APPLICATIONS["xapian"].libraries or "")
    assert {file.name for file in beside.iterdir()} == {"libxapian.so.22", "libxapian.so.22.6.0"}
    assert (beside / "libxapian.so.22").read_text() == "libxapian.so.22.6.0"
    assert b"".join(found.contents()) != without


def test_an_application_finds_what_it_was_built_with_at_the_path_that_it_has_here(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("experiments.places.counted.installed.HIDDEN", tmp_path / "hidden")
    _with_sphinx(root, tmp_path)
    tree = tmp_path / "tree"
    found = Installed.of(("sphinx",))
    found.copy(tree, "seated PROGRAM")
    here = tree / root.relative_to("/")
    assert here.readlink() == Path("/programs/tailbench")
    kept = tree / "programs/tailbench/sphinx"
    assert (kept / MODEL / "mdef").read_text() == "mdef"
    assert (kept / "audio_samples").read_text() == "one.raw\n"
    elsewhere = replace(found, home=Path("/opt/tailbench"))
    assert b"".join(elsewhere.contents()) != b"".join(found.contents())


def test_where_a_guest_would_hide_what_it_was_built_with_a_line_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("experiments.places.counted.installed.HIDDEN", tmp_path)
    _with_sphinx(root, tmp_path)
    Installed.of(("masstree",))
    with pytest.raises(HostCannotError, match="TAILBENCH_DIR: is below .*, of which a guest has its own"):
        Installed.of(("sphinx",))
    (root / "sphinx/audio_samples").unlink()
    with pytest.raises(HostCannotError, match="audio_samples: is not there: build sphinx in TAILBENCH_DIR"):
        Installed.of(("sphinx",))


def _with_sphinx(root: Path, tmp_path: Path) -> None:
    (tmp_path / "data/sphinx").mkdir(parents=True)
    (root / "sphinx" / MODEL).mkdir(parents=True)
    (root / "sphinx" / MODEL / "mdef").write_text("mdef")
    (root / "sphinx/audio_samples").write_text("one.raw\n")
    (root / "sphinx/decoder_integrated").write_text("decoder")
    (root / "sphinx/decoder_integrated").chmod(0o755)


def test_what_is_not_there_is_a_line_that_says_how_to_mend_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HostCannotError, match="dbtest_integrated: is not there: build silo in TAILBENCH_DIR"):
        Installed.of(("masstree", "silo"))
    (root / "configs.sh").unlink()
    with pytest.raises(HostCannotError, match="tailbench.inputs/img-dnn/m.* an input that DATA_ROOT"):
        Installed.of(("img-dnn",))
    monkeypatch.delenv("TAILBENCH_DIR")
    with pytest.raises(Refusal, match="TAILBENCH_DIR: not set: name the folder") as caught:
        or_refuse(lambda: Installed.of(("masstree", "silo")))  # type: ignore[arg-type,return-value]
    assert caught.value.status is ExitStatus.HOST


def test_a_guest_without_applications_needs_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAILBENCH_DIR", raising=False)
    assert Installed.of(()) == Installed((), ())


def test_inputs_are_what_an_application_is_told_of() -> None:
    found = {name: one.inputs for name, one in APPLICATIONS.items()}
    assert found == {
        "masstree": (),
        "silo": (),
        "img-dnn": ("img-dnn/models/model.xml", "img-dnn/mnist"),
        "xapian": ("xapian/wiki", "xapian/terms.in"),
        "sphinx": ("sphinx",),
    }
