"""What is loaded when: the contracts that import-linter cannot see, because imports inside functions hide from it."""

import json
import subprocess
import sys

import pytest

PROBE = "import sys, json; {code}; print(json.dumps([m for m in {wanted} if m in sys.modules]))"


def _loaded(code: str, wanted: list[str]) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code, wanted=wanted)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def test_the_engine_loads_no_terminal_library() -> None:
    assert (
        _loaded(
            "import sgmon.watch.engine, sgmon.export.text, sgmon.export.json", ["textual", "rich", "httpx", "pynvml"]
        )
        == []
    )


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["status", "--help"], ["wait", "--help"]])
def test_help_and_version_load_nothing_heavy(argv: list[str]) -> None:
    code = f"from tui_app.cli import main\ntry: main({argv!r})\nexcept SystemExit: pass\nimport sys"
    run = f"exec({code!r})"
    assert _loaded(run, ["textual", "rich", "httpx", "pynvml"]) == []


@pytest.mark.parametrize("argv", [["--json", "--port", "9"], ["status", "--json", "--port", "9"]])
def test_json_loads_no_library_that_a_look_does_without(argv: list[str]) -> None:
    code = f"from tui_app.cli import main\nmain({argv!r})"
    run = f"exec({code!r})"
    screen = ["textual", "rich", "asyncio"]
    rare = ["httpx", "psutil", "packaging", "sqlite3", "ssl", "hashlib", "statistics", "importlib.resources"]
    assert _loaded(run, screen + rare) == []
