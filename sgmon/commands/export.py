"""``sgmon export``: metrics for Prometheus, and answers for the probes of an orchestrator. Runs until it is ended."""

from __future__ import annotations

import argparse
import ipaddress
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sgmon.commands import FAILED
from sgmon.commands.hosts import add_host_arguments
from sgmon.commands.live import live_engine
from sgmon.commands.output import say_no_server
from sgmon.commands.watching import (
    UsageError,
    add_target_arguments,
    add_watch_arguments,
    number,
    say_usage,
    seconds,
    settings_from,
)
from sgmon.discovery import TargetError, find
from sgmon.export.fleet.answers import HOLD_S
from sgmon.export.fleet.metrics import metrics
from sgmon.export.fleet.web import MetricsText, Newest, WebServer
from sgmon.paths import write_whole
from sgmon.signals import told_of
from sgmon.watch.engine import Engine

if TYPE_CHECKING:
    from sgmon.export.fleet.otlp import Sender

PORT = 9400
LOOPBACK = "127.0.0.1"
TEXTFILE_S = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_watch_arguments(parser)
    add_host_arguments(parser)
    group = parser.add_argument_group("export")
    group.add_argument(
        "--listen-port", metavar="N", default=str(PORT), help=f"HTTP port to answer on (default {PORT})"
    )
    group.add_argument(
        "--listen",
        metavar="ADDRESS",
        default=LOOPBACK,
        help=f"address to answer on (default {LOOPBACK}: this host only)",
    )
    group.add_argument(
        "--textfile", metavar="FILE", default="", help="write the metrics there, for node_exporter; no HTTP"
    )
    group.add_argument(
        "--stall", metavar="T", default=f"{HOLD_S:.0f}s", help="/livez fails when a stall has lasted this long"
    )
    group.add_argument("--otlp", metavar="URL", default="", help="send the metrics there too, by OTLP over HTTP")


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        hold_s = seconds("--stall", args.stall)
        port = number("--listen-port", args.listen_port, 0, 65535) or 0
        address = _address(args.listen)
        textfile = _textfile(args.textfile)
        text = _metrics_text(needed=bool(args.textfile))
        if settings.pid is not None:
            find(Path(settings.proc_root), settings)
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        return say_no_server(err, as_json=False)
    engine = live_engine(settings)
    newest = Newest(lambda: engine.snapshot, time.time)
    sender = None
    try:
        sender = _sender(args.otlp, newest)
        if textfile is not None:
            return _until_ended(engine, lambda: _write(textfile, newest))
        with WebServer(address, port, newest, text, hold_s) as server:
            _say_where(server, text)
            return _until_ended(engine)
    except UsageError as err:
        return say_usage(err)
    except OSError as err:
        print(f"sgmon: cannot listen on {address} port {port}: {err.strerror}. Try --listen-port N", file=sys.stderr)
        return FAILED
    finally:
        if sender is not None:
            sender.stop()
        engine.stop()


def _until_ended(engine: Engine, write: Callable[[], str] | None = None) -> int:
    """Watch until SIGTERM or Ctrl-C. write: called each ``TEXTFILE_S``; says what went wrong, "" for nothing."""
    ended = threading.Event()
    trouble = ""
    with told_of((signal.SIGTERM, signal.SIGINT), lambda _: ended.set()):
        engine.start()
        while not ended.wait(TEXTFILE_S if trouble or write is None or engine.snapshot.looked_for else 1.0):
            if engine.ended.is_set():
                print(f"sgmon: the watch has ended: {engine.failure or 'nothing is left to read'}", file=sys.stderr)
                return FAILED
            before, trouble = trouble, write() if write is not None else ""
            if trouble and trouble != before:
                print(f"sgmon: {trouble}", file=sys.stderr)
    return 0


def _write(path: Path, newest: Newest) -> str:
    """Write the metrics to a file. What went wrong in words; "" when it is written."""
    from sgmon.export.fleet.prometheus import textfile

    snapshot, age_s = newest.look()
    try:
        write_whole(path, (textfile(lambda: metrics(snapshot, age_s=age_s)),), 0o644)
    except OSError as err:
        return f"cannot write {path}: {err.strerror}; tried again in {TEXTFILE_S:.0f} s"
    return ""


def _say_where(server: WebServer, text: MetricsText | None) -> None:
    host, port = server.server_address[:2]
    place = f"[{host!s}]" if ":" in str(host) else str(host)
    what = "/metrics /livez /readyz /startupz /status"
    print(f"sgmon: http://{place}:{port} answers {what}", file=sys.stderr, flush=True)
    if text is None:
        print(
            "sgmon: no /metrics: prometheus-client is missing. Try: pip install 'sgmon[prometheus]'", file=sys.stderr
        )
    if not ipaddress.ip_address(str(host)).is_loopback:
        print(
            "sgmon: other hosts can read this: names of models and the headline, no secrets, no log", file=sys.stderr
        )


def _metrics_text(*, needed: bool) -> MetricsText | None:
    """What writes /metrics; None without its library. Raises ``UsageError`` where it is needed."""
    if find_spec("prometheus_client") is None:
        if needed:
            raise UsageError("--textfile needs prometheus-client. Try: pip install 'sgmon[prometheus]'")
        return None
    from sgmon.export.fleet.prometheus import text

    return text


def _sender(url: str, newest: Newest) -> Sender | None:
    """What sends by OTLP; None where it is not asked for. Raises ``UsageError``."""
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--otlp {url!r} is no URL: try http://127.0.0.1:4318/v1/metrics")
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise UsageError("--otlp needs opentelemetry. Try: pip install 'sgmon[otlp]'")
    from sgmon.export.fleet.otlp import Sender

    return Sender(url, newest)


def _address(text: str) -> str:
    """An IP address to listen on; "localhost" is the loopback. Raises ``UsageError``."""
    if text == "localhost":
        return LOOPBACK
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise UsageError(f"--listen {text!r} is no IP address: try {LOOPBACK}, ::1, or 0.0.0.0 for all") from None


def _textfile(text: str) -> Path | None:
    """The file of --textfile; node_exporter reads those that end in .prom. Raises ``UsageError``."""
    if not text:
        return None
    path = Path(text).absolute()
    if path.suffix != ".prom":
        raise UsageError(f"--textfile {text}: node_exporter reads files that end in .prom only. Try {path.stem}.prom")
    if not path.parent.is_dir():
        raise UsageError(f"--textfile {text}: no folder {path.parent}. Make it, or name another one")
    return path
