"""The command line. Imports nothing heavy before it knows what is wanted: no Textual for --help or --json."""

from __future__ import annotations

import argparse
import importlib
import sys

from sgmon import __version__

#: command -> (module, one line of help). Those with a screen are in ``tui_app.watch``.
COMMANDS = {
    "run": ("sgmon.commands.run", "start a server and watch it from second 0"),
    "demo": ("sgmon.commands.demo", "watch a simulated server (no GPU, no SGLang needed)"),
    "status": ("sgmon.commands.status", "one look, one verdict, exit"),
    "wait": ("sgmon.commands.wait", "block until ready, crashed or stalled (for scripts)"),
    "log": ("sgmon.commands.log", "read a log after the fact"),
    "stacks": ("sgmon.commands.stacks", "all ranks' stacks, merged"),
    "record": ("sgmon.commands.record", "record everything, without a screen"),
    "replay": ("sgmon.commands.replay", "play a recording back"),
    "report": ("sgmon.commands.report", "the evidence bundle, redacted, for a bug report"),
    "runs": ("sgmon.commands.runs", "finished starts on this machine"),
    "diff": ("sgmon.commands.diff", "compare two starts"),
    "doctor": ("sgmon.commands.doctor", "what sgmon can see here, and how to see more"),
}

EPILOG = """\
commands:
{commands}

exit codes of status, wait and log: 0 ready, 1 sgmon failed, 2 wrong usage, 3 stalled or stopped,
4 not ready (in time), 5 crashed, 6 no server
"""


def main(argv: list[str] | None = None) -> int:
    """Entry point of ``sgmon``; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        if words and not words[0].startswith("-"):
            return _command(words[0], words[1:])
        return _watch(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _command(name: str, words: list[str]) -> int:
    if name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean: sgmon {near[0]}?" if near else "try: sgmon --help"
        print(f"sgmon: no command {name!r}; {hint}", file=sys.stderr)
        return 2
    module_name, help_line = COMMANDS[name]
    module = importlib.import_module(module_name)
    parser = argparse.ArgumentParser(
        prog=f"sgmon {name}", description=help_line, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.add_arguments(parser)
    args = parser.parse_args(words)
    if name == "demo" and not args.list and not args.server_only:
        from tui_app.watch import watch_demo

        return watch_demo(args)
    if name == "run" and not args.wait:
        from tui_app.watch import watch_run

        return watch_run(args)
    if name == "replay":
        from tui_app.watch import watch_replay

        return watch_replay(args)
    code: int = module.run(args)
    return code


def _watch(words: list[str]) -> int:
    from sgmon.commands.watching import add_target_arguments

    commands = "\n".join(f"  {name:8} {line}" for name, (_, line) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="sgmon",
        usage="sgmon [options] | sgmon COMMAND ...",
        description="Watch the SGLang server on this machine while it starts: hung, or slow? Where, which rank, why?",
        epilog=EPILOG.format(commands=commands),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sgmon {__version__}")
    add_target_arguments(parser)
    add_screen_arguments(parser)
    args = parser.parse_args(words)
    if args.json:
        from sgmon.commands import status

        return status.run(args)
    from tui_app.watch import watch_live

    return watch_live(args)


def add_screen_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("screen")
    group.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    group.add_argument("--ascii", action="store_true", help="no glyphs beyond ASCII")
    group.add_argument("--theme", metavar="T", default="", help="a Textual theme, e.g. textual-dark, nord")
    group.add_argument("--json", action="store_true", help="no screen: the same as sgmon status --json")
    group.set_defaults(seconds="0")


if __name__ == "__main__":
    sys.exit(main())
