"""The command line: help for everything, one clear line for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from .tool import Tool

SUBCOMMANDS = ["service", "memcached", "redis", "http", "postgres", "threads", "wakeup"]

MISTAKES = {
    "service --rate x": "--rate: must be a number above 0, got 'x'",
    "service --rate 0": "--rate: must be a number above 0, got '0'",
    "service --step-at 1": "--step-at: --step-at and --step-rate go together",
    "service --step-rate 5": "--step-rate: --step-at and --step-rate go together",
    "service --background-from 1": "--background-from: needs --background of at least 1",
    "service --rate nan": "--rate: must be a number above 0, got 'nan'",
    "service --rate 1e6 --seconds 1e6": "--rate: 1e+06/s for 1e+06 s is more than 20000000 requests",
    "service --warmup -1": "--warmup: must be a number from 0 to 1e+06, got '-1'",
    "service --seed 1x": "--seed: must be a whole number from 0 to 18446744073709551615, got '1x'",
    "service --helpers -1": "--helpers: must be a whole number from 0 to 1024, got '-1'",
    "service --imbalance 0.5": "--imbalance: must be a number from 1 to 1000, got '0.5'",
    "service --variant ring": "--variant: must be one of fanout, pipeline, convoy, pretend, got 'ring'",
    "service --distribution=": "--distribution: must be one of exp, fixed, lognormal, got ''",
    "service --stages 3": "--stages: has no meaning for --variant fanout",
    "service --variant convoy --helpers 0": "--helpers: must be at least 1 for --variant convoy, got '0'",
    "service --alternate-s 2": "--alternate-s: has no meaning for --variant fanout",
    "service --variant pretend --helpers 3": (
        "--helpers: must be even and at least 2 for --variant pretend, got '3'"
    ),
    "service --background-wakes peer": "--background-wakes: needs --background of at least 1",
    "service --answers": "--answers: needs --feeder",
    "service --joins --helpers 0": "--joins: needs --helpers of at least 1",
    "service --joins --variant pipeline": "--joins: has no meaning for --variant pipeline",
    "service --sigma 2": "--sigma: needs --distribution lognormal",
    "service --feeder=1": "--feeder: takes no value",
    "service --seconds": "--seconds: needs a value",
    "service --colour red": "--colour: is not an option of service (see dasec-load service --help)",
    "service fast": "--help: shows the options of service; 'fast' is not one",
    "memcached --get-ratio 2": "--get-ratio: must be a number from 0 to 1, got '2'",
    "memcached --value-bytes 9-3": "--value-bytes: must be N or LOW-HIGH within 1 to 1000000, got '9-3'",
    "memcached --key-bytes 2": "--key-bytes: must be at least 4 for 10000 keys, got '2'",
    "memcached --unix /x --port 1": "--unix: cannot be combined with --host or --port",
    "http --get-ratio 0.9": "--get-ratio: must be 1: http only gets, got '0.9'",
    "threads --threads 0": "--threads: must be a whole number from 1 to 16384, got '0'",
    "threads --spin --rate 3": "--rate: has no meaning with --spin",
    "wakeup --cpu 1023": "--cpu: must be a CPU this process may use, got '1023'",
    "fast": "'fast': must be one of service, memcached, redis, http, postgres, bare, threads, matrixmul,"
    " wakeup",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_clear_line_and_exit_2(tool: Tool, command: str) -> None:
    done = tool.call(*command.split())
    assert done.returncode == 2
    assert done.stderr == f"dasec-load: {MISTAKES[command]}\n"
    assert done.stdout == ""


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_help_lists_every_parameter_of_the_result(tool: Tool, subcommand: str) -> None:
    done = tool.call(subcommand, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "  --seconds " in done.stdout
    assert "  --seed " in done.stdout


def test_general_help_names_each_subcommand(tool: Tool) -> None:
    done = tool.call("--help")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in SUBCOMMANDS)


def test_an_unwritable_result_fails_before_the_run(tool: Tool, tmp_path: Path) -> None:
    done = tool.call("service", "--seconds", "50", "--out", str(tmp_path / "none" / "out"))
    assert done.returncode == 1
    assert done.stderr == f"dasec-load: cannot write {tmp_path}/none/out: No such file or directory\n"


def test_the_result_repeats_all_parameters(tool: Tool) -> None:
    result = tool.run("threads", "--threads", "2", "--seconds", "0.1", "--seed", "18446744073709551615")
    help_text = tool.call("threads", "--help").stdout
    for key in result["parameters"].names():
        assert f"  --{key.replace('_', '-')} " in help_text
    assert result["seed"].integer() == 2**64 - 1
    assert result["schema"].integer() == 1
