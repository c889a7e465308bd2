"""Whether a command line starts an SGLang server, and which of its words are the server's own arguments."""

from __future__ import annotations

from sgmon.servers.command import command_of
from sgmon.servers.family import Launch

#: console script, modules and scripts that want the subcommand "serve" (sglang >= 0.5.5.post3: cli/main.py)
_SERVE = frozenset({"sglang", "sglang.cli.main", "sglang.cli"})
#: 0.5.2 retitles its main (entrypoints/http_server.py:1160); sglang_router's launcher titles its servers
_TITLES = ("sglang::http_server", "sglang::server")


def recognise(argv: tuple[str, ...]) -> Launch | None:
    """The launch that ``argv`` is, or None. Expects the argv as /proc/PID/cmdline gives it."""
    if not argv:
        return None
    if argv[0].startswith(_TITLES):
        return Launch("titled")
    command = command_of(argv)
    if command is None:
        return None
    if command.kind == "module" and command.name == "sglang.launch_server":
        return Launch("module", command.tail)
    if command.kind == "script" and command.name.endswith("sglang/launch_server.py"):
        return Launch("module", command.tail)
    serves = command.name in _SERVE if command.kind == "module" else _is_console_script(command.name)
    return Launch("serve", command.tail[1:]) if serves and command.tail[:1] == ("serve",) else None


def _is_console_script(name: str) -> bool:
    return name.rsplit("/", 1)[-1] == "sglang" or name.endswith("sglang/cli/main.py")
