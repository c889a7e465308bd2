"""``sgmon check -- CMD``: what would fail if this command line were started now. Starts nothing."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from typing import Any

from sgmon.analyse.foreseen import start_of
from sgmon.collect.preflight.read import read
from sgmon.commands import READY, STALLED
from sgmon.commands.gpus import ask_gpu
from sgmon.commands.output import print_json
from sgmon.commands.watching import UsageError, say_usage
from sgmon.discovery import config, inner, version
from sgmon.foresight.check import forecast
from sgmon.model import GpuReading, Server, Snapshot
from sgmon.model.preflight import Forecast, Level
from sgmon.servers import names, registry
from sgmon.settings import Settings
from sgmon.text import masked_argv, safe
from sgmon.units import plural

ROOT = "/proc"
_SIGN = {Level.OK: "ok", Level.WARNING: "warning", Level.WILL_FAIL: "WILL FAIL", Level.UNKNOWN: "unknown"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    example = f"sgmon check -- {names.start_command()} --model-path ... --tp 8"
    parser.epilog = f"exit codes: 0 nothing is sure to fail, 2 wrong usage, 3 it will fail. Example:\n  {example}"
    parser.add_argument("--json", action="store_true", help="one JSON object (schema 1)")
    parser.add_argument("--all", action="store_true", help="also what is ok")
    parser.add_argument("--no-gpu", action="store_true", help="do not load NVML")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the server's command line")


def run(args: argparse.Namespace) -> int:
    try:
        server = server_of(args.command)
    except UsageError as err:
        return say_usage(err)
    gpu = ask_gpu(Settings()) if not args.no_gpu else None
    found = check(server, gpu)
    if args.json:
        print_json({"schema": 1, "level": worst(found), "checks": [_object(one) for one in found]})
    else:
        print("\n".join(as_lines(server, found, everything=args.all)))
    return STALLED if worst(found) is Level.WILL_FAIL else READY


def server_of(command: list[str]) -> Server:
    """The server that this command line would start, under sgmon's own pid. Raises ``UsageError``."""
    words = tuple(command[1:] if command[:1] == ["--"] else command)
    if not words:
        raise UsageError("nothing to check: give the server's own command line after sgmon check --")
    found = registry.recognise(words)
    if found is None or found[1].tail is None:
        raise UsageError(
            f"{' '.join(words)[:60]!r} starts no {names.labels()} server that sgmon knows: give its own command "
            f"line, e.g. sgmon check -- {names.start_command()} ..."
        )
    family, launch = found
    program = shutil.which(words[0])
    inside = inner.of(ROOT, os.getpid())
    installed = version.find(inside, family.package, (program or words[0], *words[1:]), dict(os.environ))
    return Server(
        pid=os.getpid(),
        start_ticks=0,
        argv=masked_argv(words, registry.is_secret_flag),
        args=family.discovery.parse_args(launch, lambda path: config.read(inside, path)),
        args_source="command line",
        version=installed.number,
        version_source=installed.source,
        site_packages=installed.site_packages,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        family=family.name,
    )


def check(server: Server, gpu: GpuReading | None) -> tuple[Forecast, ...]:
    """What every rule says of this start, the worst first."""
    facts = read(ROOT, server, started=False)
    seen = gpu if gpu is not None else GpuReading(unavailable="not looked at")
    return forecast(start_of(Snapshot(server=server, preflight=facts, gpu=seen), server))


def worst(found: tuple[Forecast, ...]) -> Level:
    """The level of the whole: what is not known weighs nothing."""
    levels = {one.level for one in found}
    return next((level for level in (Level.WILL_FAIL, Level.WARNING) if level in levels), Level.OK)


def as_lines(server: Server, found: tuple[Forecast, ...], *, everything: bool = False) -> Iterator[str]:
    """The checks as text: the worst first; what is ok only in numbers, unless ``everything`` is wanted."""
    family = registry.get(server.family)
    yield f"{family.label} {server.version or 'of unknown version'}, {_safe(server.args.model_path) or 'no model'}"
    for one in found:
        if one.level is Level.OK and not everything:
            continue
        yield f"  {_SIGN[one.level]:9}  {_safe(one.check):18}  {_safe(one.text)}"
        if one.why:
            yield f"  {'':9}  {'':18}  because {_safe(one.why)}; it fails {family.phases.during(one.phase)}"
        if one.step is not None:
            command = f": {_safe(one.step.command)}" if one.step.command else ""
            yield f"  {'':9}  {'':18}  > {_safe(one.step.text)}{command}"
    fine = sum(one.level is Level.OK for one in found)
    yield f"{_whole(found)}; {plural(fine, 'check')} ok" + ("" if everything or not fine else " (--all lists them)")


def _whole(found: tuple[Forecast, ...]) -> str:
    count = {level: sum(one.level is level for one in found) for level in Level}
    if count[Level.WILL_FAIL]:
        return f"this start will fail: {plural(count[Level.WILL_FAIL], 'reason')}"
    return f"nothing is sure to fail; {plural(count[Level.WARNING], 'warning')}"


def _object(one: Forecast) -> dict[str, Any]:
    step = one.step
    return {
        "rule": one.rule,
        "check": _safe(one.check),
        "level": one.level,
        "text": _safe(one.text),
        "why": _safe(one.why),
        "phase": one.phase,
        "step": "" if step is None else _safe(step.text),
        "command": "" if step is None else _safe(step.command),
    }


def _safe(text: str) -> str:
    return safe(text)
