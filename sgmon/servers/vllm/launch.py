"""Whether a command line starts a vLLM server, and which of its words are the server's own arguments."""

from __future__ import annotations

from sgmon.servers.command import command_of
from sgmon.servers.family import Launch

#: console script and modules that want the subcommand "serve" (0.5.5: scripts.py, later entrypoints/cli/main.py)
_SERVE = frozenset({"vllm", "vllm.entrypoints.cli.main", "vllm.entrypoints.cli", "vllm.scripts"})
#: modules that are the server themselves
_MODULES = frozenset({"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"})
_SCRIPTS = ("vllm/entrypoints/openai/api_server.py", "vllm/entrypoints/api_server.py")
#: what a script of the console commands ends in, where it is run as a file
_SERVE_FILES = ("vllm/entrypoints/cli/main.py", "vllm/scripts.py")


def recognise(argv: tuple[str, ...]) -> Launch | None:
    """The launch that ``argv`` is, or None. The root process is never retitled, in no version."""
    command = command_of(argv)
    if command is None:
        return None
    if command.kind == "module" and command.name in _MODULES:
        return Launch("module", command.tail)
    if command.kind == "script" and command.name.endswith(_SCRIPTS):
        return Launch("module", command.tail)
    serves = command.name in _SERVE if command.kind == "module" else _is_console_script(command.name)
    if not serves:
        return None
    if command.tail[:1] == ("serve",):
        return Launch("serve", command.tail[1:])
    return Launch("render", command.tail[2:]) if command.tail[:2] == ("launch", "render") else None


def _is_console_script(name: str) -> bool:
    return name.rsplit("/", 1)[-1] == "vllm" or name.endswith(_SERVE_FILES)
