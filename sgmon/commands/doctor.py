"""``sgmon doctor``: what can be seen here, how to see more, and what would spoil a start."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from sgmon.commands.gpus import ask_gpu
from sgmon.commands.output import print_json
from sgmon.commands.watching import UsageError, add_no_gpu, add_target_arguments, say_usage, settings_from
from sgmon.discovery import TargetError, find
from sgmon.doctor import Check, seeing, server_checks, starting
from sgmon.model import GpuReading
from sgmon.servers import registry
from sgmon.text import safe

_SIGN = {"ok": "ok  ", "note": "note", "bad": "BAD ", "unknown": "?   "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_no_gpu(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object (schema 1)")


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        server = find(Path(settings.proc_root), settings).server
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        print(f"sgmon: {err}", file=sys.stderr)
        server = None
    gpu = ask_gpu(settings) if settings.gpu else GpuReading(unavailable="not looked at (--no-gpu)")
    port = settings.port or (server and server.port) or registry.families()[0].default_port
    checks = seeing(settings.proc_root, server, gpu)
    checks += starting(settings.proc_root, port, gpu) if server is None else server_checks(settings.proc_root, server)
    if args.json:
        body = {"schema": 1, "checks": [_safe(check) for check in checks]}
        print_json(body)
    else:
        print("\n".join(as_lines(checks)))
    return 0


def as_lines(checks: list[Check]) -> list[str]:
    lines: list[str] = []
    group = ""
    for check in checks:
        if check.group != group:
            group = check.group
            lines += ["", group] if lines else [group]
        safe = _safe(check)
        lines.append(f"  {_SIGN[check.status]}  {safe['name']:18}  {safe['text']}")
        if check.remedy:
            lines.append(f"        {'':18}  > {safe['remedy']}")
    return lines


def _safe(check: Check) -> dict[str, str]:
    return {name: safe(value) for name, value in msgspec.to_builtins(check).items()}
