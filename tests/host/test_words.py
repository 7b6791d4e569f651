"""Words to our scheduler where none is loaded: nobody has said anything, and nothing is left to take back."""

from __future__ import annotations

import errno
import os

import pytest

from dasec.knobs import knob
from dasec.knobs.knob import KnobRef
from dasec.knobs.words import EXT_LATENCY, EXT_WEIGHT
from dasec.linux import extwords, procfs
from dasec.linux.errors import ThreadGone
from dasec.linux.sched_ext import SYSFS
from dasec.model import VcpuId

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(
        SYSFS.is_dir(), reason="this kernel may have a scheduler loaded; tests/sched_ext has that"
    ),
]

ME = os.getpid()


def ref() -> KnobRef:
    who = VcpuId(ME, ME, procfs.read_stat(ME, ME).start_ticks)
    return KnobRef(who, EXT_WEIGHT)


def test_a_word_reads_as_unset_and_is_taken_back_already() -> None:
    assert extwords.read(ME, extwords.WEIGHT) == extwords.DEFAULT
    extwords.write(ME, extwords.WEIGHT, extwords.DEFAULT)
    assert knob.read(ref()) == extwords.DEFAULT
    knob.put_back(ref(), extwords.DEFAULT)


def test_a_word_cannot_be_said() -> None:
    with pytest.raises(OSError, match="our sched_ext scheduler is not loaded") as refused:
        knob.write(ref(), 2048)
    assert refused.value.errno == errno.ENXIO


def test_a_thread_that_has_ended_is_gone_whatever_is_loaded() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    gone = KnobRef(VcpuId(child, child, 1), EXT_LATENCY)
    os.waitpid(child, 0)
    with pytest.raises(ThreadGone):
        knob.read(gone)
