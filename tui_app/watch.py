"""Runs the dashboard: on the live server, the simulated one, one that we start, or a recording."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sgmon.commands.watching import UsageError, say_usage, settings_from
from sgmon.config import keymap
from sgmon.settings import Settings
from tui_app.session import NoServerError

if TYPE_CHECKING:
    from sgmon.commands.run import Started
    from tui_app.app import SgmonApp
    from tui_app.session import EngineLike


def watch_live(args: argparse.Namespace) -> int:
    try:
        settings = _with_screen(settings_from(args), args)
    except UsageError as err:
        return say_usage(err)
    return _live(settings)


def watch_demo(args: argparse.Namespace) -> int:
    from sgmon import demo

    try:
        if args.scenario not in demo.SCENARIOS:
            raise UsageError(f"no scenario {args.scenario!r}; there are: {', '.join(demo.SCENARIOS)}")
        _need_terminal("sgmon demo --server-only")
        server = demo.start(args.scenario, **_demo_options(args))
    except UsageError as err:
        return say_usage(err)
    except (ValueError, RuntimeError, OSError) as err:
        return say_usage(UsageError(f"cannot start the simulated server: {err}"))
    with server:
        settings = Settings(pid=server.pid, port=server.port, simulated_gpus=str(server.gpus))
        return _live(_with_screen(settings, args))


def watch_run(args: argparse.Namespace) -> int:
    from sgmon.commands.run import ending, runnable, start
    from sgmon.commands.watching import watch_dirs

    try:
        runnable(args.command)
        _need_terminal("sgmon run --wait -- CMD")
        started = start(args.command, args.log)
    except UsageError as err:
        return say_usage(err)
    settings = Settings(pid=started.child.pid, is_started=True, log=str(started.log), watch_dirs=watch_dirs(args))
    settings = _with_screen(settings, args)
    words, code = ending(started, _live(settings, started))
    print(words)
    return code


def watch_replay(args: argparse.Namespace) -> int:
    from sgmon.commands.watching import seconds
    from sgmon.recording.codec import RecordingError
    from sgmon.recording.replay import ReplaySource

    try:
        at_s = seconds("--at", args.at)
        if not 0.0 <= args.speed <= 1000.0:
            raise UsageError(f"--speed {args.speed:g} is out of range (0 to 1000)")
        source = ReplaySource(Path(args.file), speed=args.speed, hold=True)
    except RecordingError as err:
        return say_usage(UsageError(str(err)))
    except UsageError as err:
        return say_usage(err)
    source.measure()
    if at_s:
        source.pause(True)
        source.seek(at_s)
    settings = _with_screen(Settings(), args)

    def make_app() -> SgmonApp:
        from sgmon.watch.engine import Engine
        from tui_app.replay_app import ReplayApp

        engine = Engine(source)
        engine.start()
        return ReplayApp(engine, settings)

    return _run(make_app, settings, "sgmon report --recording FILE")


def _live(settings: Settings, started: Started | None = None) -> int:
    def make_engine(say: Callable[[str], None]) -> EngineLike:
        from sgmon.collect.source import LiveSource
        from sgmon.commands.live import live_engine

        if settings.hosts:
            return live_engine(settings, say=say)

        found = None
        if settings.pid is not None and started is None:
            from sgmon.discovery import TargetError, find

            try:
                found = find(Path(settings.proc_root), settings)
            except TargetError as err:
                raise NoServerError(str(err)) from err
        source = LiveSource(settings, found=found)
        if started is not None:
            from sgmon.commands.run import tell_the_end

            tell_the_end(started, source)
        return live_engine(settings, source=source, say=say)

    def make_app() -> SgmonApp:
        from tui_app.app import SgmonApp

        return SgmonApp(None, settings, make_engine)

    return _run(make_app, settings)


def _run(make_app: Callable[[], SgmonApp], settings: Settings, instead: str = "sgmon status, or sgmon wait") -> int:
    """instead: what does without a terminal."""
    try:
        _need_terminal(instead)
    except UsageError as err:
        return say_usage(err)
    _quiet_textual()
    _forget_exported_size()
    question = None
    if "NO_COLOR" not in os.environ:
        from tui_app.output.background import BackgroundQuestion

        question = BackgroundQuestion()
    app = make_app()  # imports the screen, which takes longer than an answer
    app.terminal_is_light = question is not None and bool(question.answer())
    if app.terminal_is_light and settings.theme in ("", "auto"):
        app.theme = "sgmon-light"
    app.has_late_answer = question is not None and question.is_late
    code = app.run(mouse=settings.mouse)
    app.session.engine.stop()
    if app.refusal:
        print(f"sgmon: {app.refusal}", file=sys.stderr)
        return app.return_code or 0
    from tui_app.exit_summary import exit_summary

    for line in exit_summary(app.session.engine.snapshot):
        print(line)
    return code if isinstance(code, int) else app.return_code or 0


def _need_terminal(instead: str) -> None:
    # a stream that was closed by the caller is None
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise UsageError(f"the dashboard needs a terminal; without one try: {instead}")


def _quiet_textual() -> None:
    """Read by Textual when it is imported: no animations. Frames need no limit: over a slow line the driver waits for
    the terminal's answer, and a lower rate keeps back what a key shows."""
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")


def _forget_exported_size() -> None:
    """COLUMNS and LINES, which Textual takes for its first layout, where the terminal knows its size: exported, they
    are of another time, or nonsense."""
    try:
        known = all(os.get_terminal_size(sys.stderr.fileno()))
    except OSError:
        known = False
    if known:
        os.environ.pop("COLUMNS", None)
        os.environ.pop("LINES", None)


def _with_screen(settings: Settings, args: argparse.Namespace) -> Settings:
    return replace(
        settings,
        ascii=args.ascii,
        theme=args.theme,
        mouse=not args.no_mouse,
        keys=tuple(keymap().items()),
    )


def _demo_options(args: argparse.Namespace) -> dict[str, object]:
    return {
        name: value for name in ("tp", "version", "speed", "port") if (value := getattr(args, name, None)) is not None
    }
