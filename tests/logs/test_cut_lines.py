"""Runtimes cut long lines: docker every 16 KB, conmon and the CRI every 8 or 16 KB. The line of the arguments has 19 KB."""

from __future__ import annotations

import json

import pytest

from sgmon.analyse.log.fold import LogFold
from sgmon.discovery import inner, loghead
from sgmon.model import LogReading
from sgmon.servers.sglang.args_line import parse_server_args
from tests.proc.fake import FakeProc

ARGS = {"model_path": "/m", "tp_size": 4, "port": 30007, **{f"option_{i}": None for i in range(1000)}}
LINES = [
    "[2026-01-02 03:04:05] Using default HuggingFace chat template with detected content format: string",
    f"[2026-01-02 03:04:05] server_args={ARGS}",
    "[2026-01-02 03:04:09 TP0] Load weight begin. avail mem=78.50 GB",
    "[2026-01-02 03:04:09 TP1] Load weight begin. avail mem=78.50 GB",
]
STAMP = "2026-01-02T03:04:05.000000001Z"


def cut(line: str, size: int) -> list[str]:
    return [line[at : at + size] for at in range(0, len(line), size)]


def docker(size: int = 16 << 10) -> str:
    parts = [part for line in LINES for part in cut(line + "\n", size)]
    return "".join(json.dumps({"log": part, "stream": "stderr", "time": STAMP}) + "\n" for part in parts)


def cri(size: int = 8 << 10) -> str:
    text = ""
    for line in LINES:
        *first, last = cut(line, size)
        text += "".join(f"{STAMP} stderr P {part}\n" for part in first) + f"{STAMP} stderr F {last}\n"
    return text


@pytest.mark.parametrize("text", [docker(), cri(), cri(4000)], ids=["docker", "conmon", "a terminal"])
def test_the_arguments_are_read_whole(text):
    fold = LogFold()
    fold.feed(LogReading(path="log", text=text), 0.0)
    state = fold.state()
    assert (state.args.model_path, state.args.tp, state.args.port) == ("/m", 4, 30007)
    assert [m.name for m in state.milestones] == ["tokenizer_init", "args", "load_begin", "load_begin"]


@pytest.mark.parametrize("text", [docker(), cri(), "\n".join(LINES) + "\n"], ids=["docker", "cri", "plain"])
def test_the_arguments_of_a_retitled_server(tmp_path, text):
    """A title hides the command line: the arguments come from the log's first MiB."""
    (tmp_path / "log").write_text(text)
    fake = FakeProc(tmp_path)
    fake.add(100, "sglang::http_server", fds={1: "pipe:[7]", 2: "pipe:[7]"})
    written = {0: "pipe:[7]", 3: str(tmp_path / "log")}
    fake.add(200, ["tee", "log"], comm="tee", fds=written, flags={3: 0o100001})
    (line,) = [line for line in loghead.read(inner.of(str(fake), 100)).splitlines() if "server_args=" in line]
    found = parse_server_args(line)
    assert (found.model_path, found.tp, found.port) == ("/m", 4, 30007)
