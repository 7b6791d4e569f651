"""Which of the kernel's complaints are about our patches."""

from __future__ import annotations

from tests.vm.checkers import alive, complaints, other_than_races, races, races_of_ours

CONSOLE = """GUEST-LOG:[    1.0] ==================================================================
GUEST-LOG:[    1.0] BUG: KCSAN: data-race in tick_nohz_stop_tick / tick_sched_do_timer
GUEST-LOG:[    1.0] write to 0xffffffff8 of 4 bytes by task 0 on cpu 0:
GUEST-LOG:[    1.0] CPU: 0 PID: 0 Comm: swapper Not tainted 6.1.192-dasec #1
GUEST-LOG:[    1.0] ==================================================================
GUEST-JOB:stress
GUEST-LOG:[    2.0] ==================================================================
GUEST-LOG:[    2.0] BUG: KCSAN: data-race in copy_process / single_open_size
GUEST-LOG:[    2.0]  dasec_open+0x50/0x90
GUEST-LOG:[    2.0] ==================================================================
GUEST-LOG:[    2.5] e1000: eth0 is up
GUEST-LOG:[    3.0] WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:1
GUEST-END:0
GUEST-CHECKER:kmemleak scan 2
GUEST-CHECKER:kcsan setup_watchpoints: 17
GUEST-CHECKER:lockdep debug_locks:                             1
"""


def test_a_race_with_our_function_on_a_stack_is_ours_and_no_other() -> None:
    said = complaints(CONSOLE)
    assert len(list(races(said))) == 2
    (ours,) = races_of_ours(said)
    assert "copy_process" in ours[0]


def test_what_is_no_race_is_a_complaint_whoever_it_is_about() -> None:
    assert other_than_races(complaints(CONSOLE)) == (
        "[    3.0] WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:1",
    )


def test_a_checker_that_was_at_work_says_so() -> None:
    at_work = alive(CONSOLE)
    assert at_work["kcsan setup_watchpoints"] == "17"
    assert at_work["lockdep debug_locks"] == "1"
    assert "kmemleak scan 2" in at_work
