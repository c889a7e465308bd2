"""``sgmon serve`` as a browser sees it: a real Chromium, the web server, a simulated server."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e import browser
from tests.waiting import free_port
from tui_app.cli import main


@contextmanager
def _running(*words: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """The first line that sgmon prints, while it runs."""
    argv = [sys.executable, "-m", "tui_app.cli", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline()
        finally:
            process.terminate()


def _refused(url: str, **headers: str) -> str:
    """What the refusal says."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)
    with refused.value as answer:
        assert answer.code == 403
        return answer.read().decode()


@pytest.mark.skipif(browser.path() is None, reason="no Chromium here (Debian: apt-get install chromium)")
async def test_a_browser_shows_the_verdict_and_changes_nothing(tmp_path: Path) -> None:
    port, state = free_port(), tmp_path / "state"
    env = {"XDG_STATE_HOME": str(state), "TMPDIR": str(tmp_path)}
    with _running("demo", "stopped", "--server-only", "--speed", "4") as facts:
        pid = json.loads(facts)["pid"]
        with _running("serve", "--pid", str(pid), "--listen-port", str(port), env=env) as said:
            assert "read-only" in said
            address = next(word for word in said.split() if word.startswith("http"))
            here = f"http://127.0.0.1:{port}/"
            assert "token" in _refused(here) and "token" in _refused(here + "static/js/textual.js")
            assert "another site" in _refused(address, Origin="http://example.com")
            assert "another site" in _refused(address, Host="example.com")
            program = browser.path()
            assert program is not None
            async with browser.Browser(program, tmp_path / "profile") as page:
                await page.open(address)
                await page.until(lambda text: "STOPPED" in text and "kill -CONT" in text and "TP1" in text)
                with Image.open(io.BytesIO(await page.picture())) as picture:
                    colours = picture.convert("RGB").getcolors(1 << 24)
                assert colours is not None and len(colours) > 50, "the terminal is not drawn"
                await page.press("d")
                await page.until(lambda text: "read-only here: stacks are taken in a terminal only" in text)
                await page.press("?")
                await page.until(lambda text: "read-only: no stacks, no files" in text)
                assert {url.split("/")[2] for url in page.requests} == {f"127.0.0.1:{port}"}, "nothing from elsewhere"
    assert not state.exists()
    assert not list(tmp_path.glob("sgmon-*"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", "0.0.0.0.127.0.0.1.example.com"])
def test_other_addresses_than_loopback_are_refused(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--listen", host]) == 2
    said = capsys.readouterr().err
    assert host in said and "loopback" in said and len(said.splitlines()) == 1


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["serve"]) == 2
    assert capsys.readouterr().err == (
        "sgmon: sgmon serve needs textual-serve, which is not installed: pip install 'sgmon[serve]'\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--log", "-"], 2, "stdin"),
        (["--listen-port", "0"], 2, "--listen-port 0 is out of range"),
        (["--pid", "4194303"], 6, "no process 4194303"),
    ],
)
def test_what_cannot_be_served_is_said(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    with open(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["serve", *words]) == code
    os.close(writing)
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1


def test_a_port_that_is_held_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert main(["serve", "--listen-port", str(port)]) == 1
    error = capsys.readouterr().err
    assert str(port) in error and "--listen-port" in error and len(error.splitlines()) == 1
