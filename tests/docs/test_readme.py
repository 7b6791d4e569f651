"""README and docs tell the truth: commands exist, examples load, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from dasec.config.config import check
from dasec.errors import ExitStatus
from dasec.model import Decision, Period, Topology

from .markdown import anchors, blocks, commands, links, table_under

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", "build"}
PAGES = sorted(
    page for page in REPOSITORY.rglob("*.md") if not NOT_OURS & set(page.relative_to(REPOSITORY).parts)
)
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = (REPOSITORY / "docs/commands.md").read_text(encoding="utf-8")
ALL_COMMANDS = sorted({line for page in PAGES for line in commands(page.read_text(encoding="utf-8"))})
DASEC_COMMANDS = [line for line in ALL_COMMANDS if line.startswith("dasec ")]


def make_targets() -> set[str]:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


def help_of(words: list[str]) -> str:
    """What `dasec <words> --help` says, wide enough that no option is broken over two lines."""
    command = [sys.executable, "-m", "dasec", *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, f"dasec {' '.join(words)}: {done.stderr}"
    return done.stdout


def alive(page: Path, link: str) -> bool:
    """Whether a relative link has its file, and its heading in it. The world outside is not asked."""
    path, _, anchor = link.partition("#")
    if "://" in path:
        return True
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))


def name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("line", [line for line in ALL_COMMANDS if line.startswith("make ")])
def test_every_make_command_in_the_docs_has_its_target(line: str) -> None:
    assert shlex.split(line)[1] in make_targets()


@pytest.mark.parametrize("line", DASEC_COMMANDS)
def test_every_dasec_command_in_the_docs_exists_with_its_options(line: str) -> None:
    words = shlex.split(line)[1:]
    options = [word for word in words if word.startswith("--")]
    subcommand = words[: 2 if words[0] in ("bench", "fleet", "vm") else 1]
    described = help_of(subcommand)
    assert [option for option in options if option not in described] == []


def test_every_command_in_the_docs_is_one_that_these_tests_understand() -> None:
    assert [line for line in ALL_COMMANDS if not line.startswith(("make ", "dasec "))] == []


def test_the_page_of_commands_lists_every_command_of_the_program() -> None:
    listed = {row[0].strip("`").removeprefix("dasec ") for row in table_under(COMMANDS, "command")}
    section = help_of([]).split("Commands:\n")[1]
    offered = set(re.findall(r"^  (\w+)", section, re.MULTILINE))
    assert {words.split()[0] for words in listed} == offered
    for words in listed:
        help_of(words.split())


def test_the_exit_statuses_in_the_docs_are_those_of_the_code() -> None:
    listed = {int(row[0]) for row in table_under(COMMANDS, "exit status")}
    assert listed == {int(status) for status in ExitStatus}


def test_make_help_describes_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^  make ([\w-]+) +\S", done.stdout, re.MULTILINE)) == make_targets()


@pytest.mark.parametrize(("page", "workloads"), [("README.md", 1), ("docs/configuration.md", 5)])
def test_an_example_of_a_configuration_is_valid(page: str, workloads: int) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    (example,) = [block.text for block in blocks(text) if block.language == "toml"]
    assert len(check(tomllib.loads(example), page).workload) == workloads


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(README.split()) <= 750


def test_the_policy_of_the_walk_through_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    contributing = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = next(block.text for block in blocks(contributing) if block.language == "python")
    module = ModuleType("dasec.rivals.idle")
    module.__package__ = "dasec.rivals"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text, "CONTRIBUTING.md", "exec"), module.__dict__)
    policy = module.Idle()
    state = policy.initial_state()
    period = Period(0, 80_000_000, Topology((), {}), (), {}, {}, {})
    assert policy.decide(period, state) == Decision(state=state)


def test_every_decision_is_in_the_index() -> None:
    folder = REPOSITORY / "docs/decisions"
    listed = set(links((folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {record.name for record in folder.glob("0*.md")}


def test_the_readme_still_has_its_place_for_the_demo() -> None:
    assert README.index("<!-- demo output -->") < README.index("<!-- end of demo output -->")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = [link for link in links(page.read_text(encoding="utf-8")) if not alive(page, link)]
    assert dead == []
