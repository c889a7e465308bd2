"""What is loaded when: the contracts that import-linter cannot see, because imports inside functions hide from it."""

import contextlib
import json
import subprocess
import sys
import threading

import pytest

from sgmon.imports import without

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
    rare += ["typing_extensions", "inspect"]
    assert _loaded(run, screen + rare) == []


def test_a_single_request_loads_no_tls() -> None:
    assert _loaded("import sgmon.collect.probes.plain_http", ["ssl", "hashlib", "httpx", "urllib.request"]) == []


def test_the_nvml_process_loads_little() -> None:
    run = "from sgmon.collect.gpu import gateway, nvidia_child; nvidia_child.open_nvml(gateway.Place(-1))"
    assert _loaded(run, ["pynvml", "msgspec", "subprocess", "tempfile", "shutil", "runpy"]) == ["pynvml"]
    search = f"{run}; import pynvml; assert pynvml.find_library('c')"
    assert _loaded(search, ["subprocess"]) == ["subprocess"], "what pynvml does not call today works if it does"


def test_a_module_that_one_thread_does_without_is_there_for_the_others() -> None:
    found: list[str] = []

    def look(place: str) -> None:
        try:
            import this as imported  # nobody else imports it
        except ImportError:
            found.append(f"missing {place}")
        else:
            found.append(f"{imported.__name__} {place}")

    with contextlib.redirect_stdout(None), without("this"):
        look("here")
        other = threading.Thread(target=look, args=("there",))
        other.start()
        other.join()
        look("here")
    assert found == ["missing here", "this there", "this here"]
    del sys.modules["this"]
    with without("this"), pytest.raises(ValueError):
        raise ValueError
    look("afterwards")
    assert found[-1] == "this afterwards"
