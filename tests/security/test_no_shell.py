"""No shell reads foreign text: children are started by lists of words, and commands to paste are quoted."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.commands.after import run_hook
from sgmon.model import Snapshot
from sgmon.text import quoted
from tests.security.poison import HOSTILE
from tests.ui import fakes

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("sgmon", "widgets", "tui_app") for path in (ROOT / folder).rglob("*.py") if path.is_file()
)
#: the one place where the user's own words are a shell's: the hook of --on-stall
USERS_OWN = "sgmon/commands/after.py"
_SHELLS = {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell", "spawnl", "spawnlp"}
_CODE = {"eval", "exec", "__import__"}
_STARTS = {"Popen", "run", "call", "check_call", "check_output"}
#: what may stand in a command to paste without being quoted, by its last name: numbers
_NUMBERS = {"pid", "pids", "port", "holder", "tracer", "start", "line", "tracer_pid"}


@lru_cache(maxsize=1)
def calls() -> list[tuple[str, ast.Call]]:
    """Every call in the product's source, with its file."""
    return [
        (str(path.relative_to(ROOT)), node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_only_the_users_own_hook_has_a_shell() -> None:
    shells = {
        where
        for where, call in calls()
        if (
            name_of(call.func) in _STARTS
            and any(w.arg == "shell" and getattr(w.value, "value", None) is not False for w in call.keywords)
        )
        or (
            name_of(call.func) in _SHELLS
            and isinstance(call.func, ast.Attribute)
            and name_of(call.func.value) in ("os", "subprocess", "asyncio", "pty")
        )
    }  # fmt: skip
    assert shells == {USERS_OWN}


def test_no_child_is_started_by_one_text() -> None:
    texts = [
        f"{where}:{call.lineno}"
        for where, call in calls()
        if isinstance(call.func, ast.Attribute)
        and name_of(call.func.value) == "subprocess"
        and call.func.attr in _STARTS
        and where != USERS_OWN
        and isinstance(call.args[0], (ast.JoinedStr, ast.Constant))
    ]
    assert texts == []


def test_no_text_becomes_code() -> None:
    found = {f"{where}:{name_of(call.func)}" for where, call in calls() if isinstance(call.func, ast.Name)
             and call.func.id in _CODE}  # fmt: skip
    own = {"sgmon/remote/bootstrap.py:exec", "sgmon/remote/standin/msgspec/_records.py:exec"}
    assert found <= own, "the collector's own source alone"
    loads = {where for where, call in calls() if name_of(call.func) in ("loads", "load")
             and isinstance(call.func, ast.Attribute) and name_of(call.func.value) in ("pickle", "marshal", "yaml")}  # fmt: skip
    assert loads == set()


def parts_of_commands() -> Iterator[tuple[str, ast.expr]]:
    """What is put into a text that is the command of a next step, without being a constant."""
    for where, call in calls():
        if name_of(call.func) != "NextStep":
            continue
        command = (
            call.args[1] if len(call.args) > 1 else next((w.value for w in call.keywords if w.arg == "command"), None)
        )
        for node in ast.walk(command) if command is not None else ():
            if isinstance(node, ast.JoinedStr) and not _is_quoted(node, command):
                for part in node.values:
                    if isinstance(part, ast.FormattedValue):
                        yield f"{where}:{part.lineno}: {ast.unparse(part.value)}", part.value


def _is_quoted(inner: ast.AST, outer: ast.AST) -> bool:
    """Whether the text is itself an argument of ``quoted``."""
    return any(
        isinstance(node, ast.Call) and name_of(node.func) == "quoted" and inner in ast.walk(node)
        for node in ast.walk(outer)
    )


def test_foreign_words_of_a_command_to_paste_are_quoted() -> None:
    own = {"names", "group", "_task(first)"}  # made of quoted words or of numbers
    bare = [
        words
        for words, part in parts_of_commands()
        if not (isinstance(part, ast.Call) and name_of(part.func) == "quoted")
        and name_of(part) not in _NUMBERS | own
        and ast.unparse(part) not in own
    ]
    assert bare == []


@pytest.mark.parametrize("text", [HOSTILE, "$(id)", "a b", "-rf", "", "it's", "`id`", "x\ny", "\x1b[201~\nid\n"])
def test_a_quoted_word_is_one_word(text: str) -> None:
    out = subprocess.run(
        ["sh", "-c", f"printf %s {quoted(text)}"], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert "\x1b" not in out and "\n" not in out
    assert (
        out.replace("\ufffd", "").strip()[:6] == text.replace("\n", " ").replace("\x1b[201~", "").strip()[:6] or out
    )


def test_a_hook_gets_foreign_text_as_text(tmp_path: Path) -> None:
    """The verdict runs nothing when a hook uses its variables as a shell's hook does, quoted."""
    marker = tmp_path / "ran"
    snapshot: Snapshot = fakes.stuck()
    evil = f"x'; touch {marker}; $(touch {marker}) `touch {marker}` \n touch {marker}"
    snapshot = replace(
        snapshot,
        verdict=replace(snapshot.verdict, headline=evil, odd_ranks=(evil,), nodes=(evil,)),
        server=replace(snapshot.server, log_path=f"/x/{evil}"),  # type: ignore[type-var]
    )
    script = tmp_path / "hook.py"
    script.write_text("import os\nprint(repr(os.environ['SGMON_HEADLINE']), '\\n' in os.environ['SGMON_HEADLINE'])\n")
    said = run_hook(f'echo "$SGMON_HEADLINE" "$SGMON_LOG" $SGMON_ODD_RANKS; {sys.executable} {script}', snapshot, "")
    assert "touch" in said and "False" in said and said.endswith("ended with 0")
    assert not marker.exists()
