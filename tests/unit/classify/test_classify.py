"""A program is exclusive if with fewer CPUs in sight it is faster in most trials, by more than chance."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from dasec.errors import ExitStatus, Refusal
from dasec.lab.classify.command import class_of, classify
from dasec.lab.classify.trial import Attempt
from dasec.linux import cpus
from dasec.reservations.grants import CpuClass

BETTER = Attempt(1, (2.0, 2.2, 1.9, 2.1, 2.0, 2.3), (1.0, 1.1, 1.2, 1.0, 0.9, 1.0))
WORSE = Attempt(2, BETTER.cpuset_s, BETTER.quota_s)
UNSURE = Attempt(3, (1.0, 1.2, 0.9, 1.1, 1.0, 0.8), (1.1, 1.0, 1.0, 1.0, 1.1, 0.9))


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([BETTER], CpuClass.EXCLUSIVE),
        ([WORSE], CpuClass.SHARED),
        ([UNSURE], CpuClass.SHARED),
        ([BETTER, UNSURE], CpuClass.SHARED),
        ([BETTER, UNSURE, BETTER], CpuClass.EXCLUSIVE),
    ],
)
def test_the_class_is_what_most_trials_say(trials: list[Attempt], expected: CpuClass) -> None:
    assert class_of(trials) is expected


def test_the_gain_is_the_time_with_all_cpus_in_sight_over_that_with_its_own() -> None:
    assert BETTER.gain.ratio == pytest.approx(2, rel=0.1)
    assert BETTER.gain.low > 1
    assert WORSE.gain.high < 1


def test_all_cpus_of_the_host_are_no_question() -> None:
    online = len(cpus.online() - cpus.isolated())
    done = CliRunner().invoke(classify, ["--cpus", f"{online}", "true"], standalone_mode=False)
    assert isinstance(done.exception, Refusal)
    assert done.exception.status is ExitStatus.USAGE
    assert done.exception.lines[0].startswith(f"--cpus {online}: is all that there is")


def test_a_program_is_classified_on_an_installation_without_the_extra() -> None:
    program = (
        "import sys\n"
        "from dasec.lab.kit.needs import LIBRARIES\n"
        "sys.modules.update(dict.fromkeys(LIBRARIES))\n"
        "from dasec.lab.classify.command import class_of\n"
        "from dasec.lab.classify.trial import Attempt\n"
        f"print(class_of([Attempt(1, {BETTER.quota_s}, {BETTER.cpuset_s})]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{CpuClass.EXCLUSIVE}\n", "")
