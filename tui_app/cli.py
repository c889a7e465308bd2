"""The command line. Imports nothing heavy before it knows what is wanted: no Textual for --help or --json."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys

from sgmon import __version__
from sgmon.commands import EXIT_CODES
from sgmon.commands.help_format import HelpFormatter
from sgmon.commands.parser import Parser, unknown_option
from sgmon.commands.streams import code_after, prepare
from sgmon.config import ConfigError, use

#: command -> (module, one line of help). Those with a screen are in ``tui_app.watch``.
COMMANDS = {
    "run": ("sgmon.commands.run", "start a server and watch it from second 0"),
    "demo": ("sgmon.commands.demo", "watch a simulated server (no GPU, nothing to install)"),
    "status": ("sgmon.commands.status", "one look, one verdict, exit"),
    "wait": ("sgmon.commands.wait", "block until ready, crashed or stalled (for scripts)"),
    "log": ("sgmon.commands.log", "read a log after the fact"),
    "stacks": ("sgmon.commands.stacks", "all ranks' stacks, merged"),
    "record": ("sgmon.commands.record", "record everything, without a screen"),
    "replay": ("sgmon.commands.replay", "play a recording back"),
    "report": ("sgmon.commands.report", "the evidence bundle, redacted, for a bug report"),
    "serve": ("tui_app.serve", "the dashboard in a browser on this machine, read-only"),
    "export": ("sgmon.commands.export", "metrics for Prometheus, answers for an orchestrator's probes"),
    "check": ("sgmon.commands.check", "what would fail if a server were started now"),
    "runs": ("sgmon.commands.runs", "finished starts on this machine"),
    "diff": ("sgmon.commands.diff", "compare two starts"),
    "config": ("sgmon.commands.config", "what is chosen, and where each choice came from"),
    "completion": ("sgmon.commands.completion", "completion for bash, zsh or fish"),
    "doctor": ("sgmon.commands.doctor", "what sgmon can see here, and how to see more"),
}

#: Objects made between two garbage collections. Python's own 700 cost a tenth of the start: imports make many objects
#: and no garbage. Ours are frozen and without cycles.
GC_THRESHOLD = (50_000, 20, 50)
#: options of the dashboard that take a value; they may stand before a command
_WITH_VALUE = frozenset(
    {"--pid", "--port", "--log", "--log-command", "--proc-root", "--interval", "--watch-dir", "--theme"}
    | {"--host", "--hosts", "--via", "--remote-python"}
)

EPILOG = """\
commands:
{commands}

exit codes; those of a state (0, 3, 4, 5) from status, wait, log and record:
{codes}
"""


def main(argv: list[str] | None = None) -> int:
    """Entry point of ``sgmon``; returns the exit code."""
    gc.set_threshold(*GC_THRESHOLD)
    prepare()
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except ConfigError as err:
        print(f"sgmon: {err}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as err:
        said = code_after(err)
        if said is None:
            raise
        return said


def _run(words: list[str]) -> int:
    at = _command_at(words)
    if at is None:
        return _watch(words)
    name, options = words[at], words[:at] + words[at + 1 :]
    if name not in COMMANDS and (wrong := _unknown_option(words[:at])):
        print(f"sgmon: {wrong}", file=sys.stderr)
        return 2
    if name == "version":
        print(f"sgmon {__version__}")
        return 0
    if name == "help":
        return _run([*options, "--help"])
    return _command(name, options)


def _command_at(words: list[str]) -> int | None:
    """The place of the command among the words: the first that is neither an option nor the value of one."""
    skip = False
    for at, word in enumerate(words):
        if not skip and not word.startswith("-"):
            return at
        skip = not skip and word in _WITH_VALUE
    return None


def _unknown_option(words: list[str]) -> str:
    """What is wrong with an option before a word that is no command, which may be its value; "" without one."""
    known = watch_parser()._option_string_actions
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("-") and name not in known:
            return unknown_option(name, known, "try: sgmon --help")
    return ""


def _command(name: str, words: list[str]) -> int:
    if name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean: sgmon {near[0]}?" if near else "try: sgmon --help"
        print(f"sgmon: no command {name!r}; {hint}", file=sys.stderr)
        return 2
    module = importlib.import_module(COMMANDS[name][0])
    parser = Parser(prog=f"sgmon {name}", description=COMMANDS[name][1], formatter_class=HelpFormatter)
    module.add_arguments(parser)
    if name not in ("config", "completion"):
        use(parser)
    args = parser.parse_args(words)
    if name == "completion":
        from tui_app.completion import script

        print(script(full_parser(), args.shell))
        return 0
    if name == "config" and args.keys:
        from tui_app.choice_check import key_rows

        print("\n".join(key_rows()))
        return 0
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
    return _config_mistakes(code) if name == "config" else code


def _config_mistakes(code: int) -> int:
    """Say what the screen will not take of the choices: a theme, a key."""
    from sgmon.config import choices, keymap

    if code != 0:  # said already
        return code
    theme = next((one for one in choices() if one.option.name == "theme" and one.source != "default"), None)
    keys = keymap()
    if theme is None and not keys:
        return code
    from tui_app.choice_check import mistakes

    found = mistakes("" if theme is None else str(theme.value), keys, "" if theme is None else theme.source)
    print("".join(f"sgmon: {words}\n" for words in found), end="", file=sys.stderr)
    return 2 if found else code


def full_parser() -> argparse.ArgumentParser:
    """All commands in one parser: for completion and the man page."""
    parser = watch_parser()
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (module_name, help_line) in COMMANDS.items():
        one = commands.add_parser(name, help=help_line, description=help_line, formatter_class=HelpFormatter)
        importlib.import_module(module_name).add_arguments(one)
    return parser


def watch_parser() -> argparse.ArgumentParser:
    """The parser without a command."""
    from sgmon.commands.hosts import add_host_arguments
    from sgmon.commands.watching import add_screen_arguments, add_target_arguments, add_watch_arguments
    from sgmon.servers.names import labels

    commands = "\n".join(f"  {name:10} {line}" for name, (_, line) in COMMANDS.items())
    parser = Parser(
        prog="sgmon",
        usage="sgmon [options] | sgmon COMMAND ...",
        description=f"Is the {labels()} server here hung, or only slow? Where, which rank, why?",
        epilog=EPILOG.format(commands=commands, codes=EXIT_CODES),
        formatter_class=HelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"sgmon {__version__}")
    add_target_arguments(parser)
    add_watch_arguments(parser)
    add_host_arguments(parser)
    add_screen_arguments(parser)
    parser.add_argument("--json", action="store_true", help="no screen: the same as sgmon status --json")
    parser.set_defaults(seconds="0", probe="", all=False)
    return parser


def _watch(words: list[str]) -> int:
    parser = watch_parser()
    use(parser)
    args = parser.parse_args(words)
    if args.json:
        from sgmon.commands import status

        return status.run(args)
    from tui_app.watch import watch_live

    return watch_live(args)


if __name__ == "__main__":
    sys.exit(main())
