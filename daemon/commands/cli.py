"""The command `dasec`. Each command imports what it needs when it runs: `--help` stays quick."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..config.amount import Amount
from ..errors import DIRECTORY, ExitStatus, Refusal
from ..hosts.host import DEEPEST_VM_LEVEL
from ..linux.printable import printable
from . import streams
from .of_fleets import fleet
from .options import StateDirectory, json_option

directory_option = click.option(
    "--directory",
    type=StateDirectory(path_type=Path, readable=False),
    default=DIRECTORY,
    envvar="RUNTIME_DIRECTORY",
    show_default=True,
    help="Where journal and status live; in a systemd unit with RuntimeDirectory=, that one.",
)


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"dasec {version('dasec')}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show it."
)
def commands() -> None:
    """Coordinates the scheduling of consolidated VMs and containers.

    Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 the host cannot do it.
    """


@commands.command()
@click.option("--config", type=click.Path(path_type=Path), required=True, help="The TOML file.")
@click.option("--dry-run", is_flag=True, help="Decide and record, but write no knob; needs no root.")
@click.option("--periods", type=click.IntRange(min=1), help="Stop after so many.")
@click.option("--record", type=click.Path(path_type=Path), help="Record every decision to this file.")
@directory_option
def run(config: Path, dry_run: bool, periods: int | None, record: Path | None, directory: Path) -> None:
    """Control the workloads of a configuration until SIGTERM or SIGINT."""
    from ..config import config as configuration
    from ..service.run import Order, serve

    try:
        told = configuration.load(config)
    except configuration.ConfigError as error:
        raise Refusal(ExitStatus.USAGE, *error.lines) from error
    serve(Order(config, told, dry_run or told.dry_run, periods, record, directory))


@commands.command()
@directory_option
def reload(directory: Path) -> None:
    """Let the running daemon read its configuration again, and say what it answers."""
    from .reload import ask

    click.echo(printable(ask(directory)))


@commands.command()
@json_option
def probe(as_json: bool) -> None:
    """Show what this host can do, by trying."""
    from .survey import show

    show(as_json)


@commands.command()
@json_option
@click.option("--check", is_flag=True, help="Print what is not in order only, and fail if anything is.")
@directory_option
def status(as_json: bool, check: bool, directory: Path) -> None:
    """Show what the running daemon does."""
    import json
    import time

    from ..service.status import Absent, complaints, read, render

    found = read(directory, time.monotonic_ns())
    if isinstance(found, Absent):
        if as_json:
            click.echo(json.dumps({"running": False, "why": found.why}))
        raise Refusal(ExitStatus.FAILED, found.why)
    if check:
        if wrong := complaints(found):
            raise Refusal(ExitStatus.FAILED, *map(printable, wrong))
        return
    click.echo(json.dumps({"running": True, **found}, indent=2) if as_json else render(found))


record_option = click.option(
    "--record",
    type=click.Path(path_type=Path),
    help="A record of `dasec run --record`; default: the running daemon's.",
)


@commands.command()
@click.argument("workload")
@record_option
@json_option
@directory_option
def explain(workload: str, record: Path | None, as_json: bool, directory: Path) -> None:
    """Show why each knob of a workload is what it is."""
    import time

    from .explain import answer

    click.echo(answer(workload, record, directory, time.monotonic_ns(), as_json=as_json))


@commands.command()
@record_option
@click.option(
    "--interval",
    type=Amount(0.1, 60),
    default=1.0,
    show_default=True,
    help="Seconds between looks.",
)
@click.option("--times", type=click.IntRange(min=1), help="Stop after so many looks.")
@directory_option
def top(record: Path | None, interval: float, times: int | None, directory: Path) -> None:
    """Show live who waits, which knobs they have, and why these changed."""
    from .top import show as show_live

    show_live(record, directory, interval, times)


@commands.command()
@directory_option
def verify(directory: Path) -> None:
    """Compare the kernel with what the journal says that we meant."""
    from .journal import compare

    compare(directory)


@commands.command()
@click.option("--force", is_flag=True, help="Also under a running daemon, which then yields those knobs.")
@directory_option
def restore(directory: Path, force: bool) -> None:
    """Put everything back; harmless to repeat."""
    from .journal import put_back

    put_back(directory, force=force)


@commands.command()
@click.argument("file", type=click.Path(path_type=Path))
def replay(file: Path) -> None:
    """Decide a record again; fail at the first difference."""
    from ..record.replay import NoRecord, ReplayFailed
    from ..record.replay import replay as replay_file

    try:
        verdict = replay_file(file)
    except ReplayFailed as error:
        status = ExitStatus.USAGE if isinstance(error, NoRecord) else ExitStatus.FAILED
        raise Refusal(status, str(error)) from error
    except OSError as error:
        raise Refusal(ExitStatus.USAGE, f"{file}: {error.strerror}: give a readable record") from error
    for notice in verdict.notices:
        click.echo(printable(f"dasec: {notice}"), err=True)
    click.echo(f"{file}: {verdict.periods} periods, {verdict.changes} changes: every decision identical")


connect_option = click.option(
    "--connect", "uri", default="qemu:///system", show_default=True, help="libvirt's URI."
)


@commands.group()
def vm() -> None:
    """Let libvirt domains opt in and out by their own metadata."""


@vm.command()
@click.argument("name")
@click.option("--share", type=click.IntRange(2, 262144), help="Its share; default: what the host gives it.")
@connect_option
def enable(name: str, share: int | None, uri: str) -> None:
    """Let a domain opt in, now and after its next start."""
    from ..workloads.libvirt.metadata import Consent
    from .vm import enable as opt_in

    click.echo(opt_in(uri, name, Consent(share)))


@vm.command()
@click.argument("name")
@connect_option
def disable(name: str, uri: str) -> None:
    """Let a domain opt out; its knobs are put back at the daemon's next look."""
    from .vm import disable as opt_out

    click.echo(opt_out(uri, name))


@commands.command()
@click.option(
    "--level",
    type=click.IntRange(1, DEEPEST_VM_LEVEL),
    help="VMs are the cgroups at this depth; default: 2, as libvirt's and systemd's, or what FILE says.",
)
@click.option(
    "--partial",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Only the threads of this configuration's workloads; the kernel's own scheduler keeps all others.",
)
@directory_option
def scx(level: int | None, partial: Path | None, directory: Path) -> None:
    """Schedule this host by our own sched_ext scheduler, until SIGTERM or SIGINT."""
    from .scx import schedule, schedule_workloads

    if partial is None:
        schedule(level, directory)
    else:
        schedule_workloads(partial, level, directory)


@commands.command()
@click.argument("asks", nargs=-1, required=True, metavar="ASK...")
@click.option("--what-if", is_flag=True, help="Only show it: `cpu` and `cpus` in the configuration do it.")
@click.option("--best-effort", is_flag=True, help="Spread what has no whole CPUs over more, instead of no.")
@click.option("--cpus", metavar="LIST", help="The CPUs to give; default: all that are online.")
@click.option("--apart", metavar="LIST", help="CPUs for all the rest of the system, never given.")
@click.option(
    "--machine", metavar="SxCxT", help="Not this host: so many sockets, cores in each, threads in each."
)
@json_option
def reserve(
    asks: tuple[str, ...],
    what_if: bool,
    best_effort: bool,
    cpus: str | None,
    apart: str | None,
    machine: str | None,
    as_json: bool,
) -> None:
    """Show who would get which CPUs of this host, asked one after the other.

    ASK is NAME=CPUS[:CLASS], with CLASS shared (the default), exclusive (sees as many CPUs as it may use) or
    whole (rounded up), or release=NAME. For instance: web=3.5:exclusive db=2:whole batch=4.
    """
    from .reserve import Question, answer

    if not what_if:
        raise Refusal(
            ExitStatus.USAGE,
            "dasec reserve: only shows: add --what-if; the daemon keeps what its configuration reserves",
        )
    shown, refused = answer(Question(asks, cpus, apart, machine, best_effort), as_json=as_json)
    click.echo(shown)
    if refused:
        raise Refusal(ExitStatus.FAILED, *refused)


commands.add_command(fleet)

PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""Settings of a command whose arguments belong to another module's command."""


@commands.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Compare policies on consolidated real workloads on this machine."""
    from ..lab.demo.command import command

    command.main(list(arguments), prog_name="dasec demo", standalone_mode=False)


@commands.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def classify(arguments: tuple[str, ...]) -> None:
    """Try whether a program wants CPUs of its own."""
    from ..lab.classify.command import classify as command

    command.main(list(arguments), prog_name="dasec classify", standalone_mode=False)


@commands.command(context_settings=PASS_ON, add_help_option=False, hidden=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def load(arguments: tuple[str, ...]) -> None:
    """Run the native load tool of the experiments, and add histograms to its results."""
    from ..lab.load_tool import command

    command.main(list(arguments), prog_name="dasec load", standalone_mode=False)


@commands.group()
def bench() -> None:
    """Measure the daemon itself."""


@bench.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def overhead(arguments: tuple[str, ...]) -> None:
    """Measure what a period costs with real threads."""
    from ..lab.overhead.command import command

    command.main(list(arguments), prog_name="dasec bench overhead", standalone_mode=False)


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its status; a user's error is one line, a bug a traceback."""
    streams.open_all()
    sys.exit(streams.flushed(_outcome(arguments)))


def _outcome(arguments: list[str] | None) -> int:
    try:
        commands.main(arguments, prog_name="dasec", standalone_mode=False)
    except Refusal as refusal:
        for line in refusal.lines:
            streams.say(printable(f"dasec: {line}"))
        return refusal.status
    except click.exceptions.NoArgsIsHelpError as error:
        streams.say(error.format_message())
        return ExitStatus.USAGE
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "dasec"
        streams.say(f"dasec: {error.format_message()} See `{command} --help`.")
        return ExitStatus.USAGE
    except click.Abort:
        streams.say("dasec: interrupted")
        return ExitStatus.FAILED
    except streams.NotTaken as error:
        return streams.unwritten(error)
    return ExitStatus.DONE
