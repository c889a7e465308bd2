"""Any recorded log in any envelope reads as it does bare."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log.fold import LogFold
from sgmon.commands.log import read
from sgmon.model import LogReading, LogState
from tests.log.loading import case_text, fold, recording

Wrap = Callable[[int, str], str]

TEXTS = {
    "gpu/oom_frac": recording("gpu/oom_frac"),
    "cpu/bad-shard": recording("cpu/bad-shard"),
    "cpu/tp2-kill9-load": recording("cpu/tp2-kill9-load"),
    "gpu/tp2": recording("gpu/tp2"),
    "sgl-4233": case_text("sgl-4233"),
    "sgl-4503": case_text("sgl-4503"),
    "sgl-5416": case_text("sgl-5416"),
}
ZERO = datetime(2026, 1, 29, 13, 12, 37)


def told(state: LogState) -> tuple[object, ...]:
    """What the envelope must not change."""
    error = state.error
    return (
        state.outcome,
        state.phase,
        state.lines,
        [(m.name, m.rank, m.line) for m in state.milestones],
        [(rank.rank, rank.milestone, rank.line) for rank in state.ranks],
        (error.kind, error.line, error.rank, error.text) if error else None,
    )


def lines_of(text: str) -> list[str]:
    """As a collector sees them: one line, one entry, of a bar its last frame."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.removesuffix("\n").split("\n")]


def stamp(number: int, form: str) -> str:
    return (ZERO + timedelta(seconds=number)).strftime(form)


names = st.from_regex(r"[a-z][a-z0-9]{1,8}(?:[-_][a-z0-9]{1,6}){0,3}", fullmatch=True)
times = st.sampled_from(
    [
        *("%Y-%m-%dT%H:%M:%S.123456789Z", "%Y-%m-%dT%H:%M:%S+08:00", "%Y-%m-%d %H:%M:%S,123", "%b %d %H:%M:%S"),
        *("%b %d, %Y @ %H:%M:%S.123", "%Y/%m/%d %H:%M:%S"),
    ]
)
marks = st.sampled_from(
    ["{t} ", "[{t}] ", "{t}\t", "{t} {n}: ", "{t} {n} | ", "{t} {n}[4242]: ", "{n} | ", "({n} pid=12) "]
)


@st.composite
def prefixes(draw: st.DrawFn) -> Wrap:
    """A time, a name, marks; nested once at most."""
    parts = [(draw(marks), draw(times), draw(names)) for _ in range(draw(st.integers(1, 2)))]

    def wrap(number: int, line: str) -> str:
        return "".join(mark.format(t=stamp(number, form), n=name) for mark, form, name in parts) + line

    return wrap


@st.composite
def objects(draw: st.DrawFn) -> Wrap:
    """One JSON object a line, the text under any name, at any depth."""
    key, depth = draw(names), draw(st.integers(0, 2))
    compact = draw(st.booleans())

    def wrap(number: int, line: str) -> str:
        value: object = {key: line}
        for _ in range(depth):
            value = {"inside": value, "level": "INFO"}
        entry = {"ts": stamp(number, "%Y-%m-%dT%H:%M:%SZ"), "entry": value, "pid": 7}
        return json.dumps(entry, separators=(",", ":") if compact else None)

    return wrap


quotes: st.SearchStrategy[Wrap] = st.sampled_from(["> ", "    ", "\t", ">> ", "| "]).map(
    lambda mark: lambda number, line: mark + line
)
numbers: st.SearchStrategy[Wrap] = st.sampled_from(["{}:", "{}\t", "{:6}\t", "{}: "]).map(
    lambda form: lambda number, line: form.format(number + 1) + line
)


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=12, deadline=None)
@given(wrap=st.one_of(prefixes(), objects(), quotes, numbers), data=st.data())
def test_any_envelope_reads_the_same(name: str, wrap: Wrap, data: st.DataObject) -> None:
    lines = lines_of(TEXTS[name])
    wrapped = "\n".join(wrap(number, line) for number, line in enumerate(lines)) + "\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wrapped)), max_size=4)))
    assert told(fold(wrapped, cuts)) == told(fold("\n".join(lines) + "\n"))


@pytest.mark.parametrize("inside", ["2026/01/29 13:12:41 ", "Jan 29 13:12:41 web-1: ", "2026-01-29T13:12:41.5Z "])
def test_a_time_between_two_records_is_envelope_as_well(inside: str) -> None:
    """The outer time looks like a record of the server's own."""
    lines = lines_of(TEXTS["sgl-4503"])
    wrapped = "".join(f"[2026-01-29 13:12:41,123] {inside}{line}\n" for line in lines)
    assert told(fold(wrapped)) == told(fold("\n".join(lines) + "\n"))


CRASH = [
    "[2026-01-29 13:12:40 TP0] Load weight begin. avail mem=21.63 GB",
    "[2026-01-29 13:12:40 TP1] Load weight begin. avail mem=21.63 GB",
    "[2026-01-29 13:12:56 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/sgl/scheduler.py", line 3096, in run_scheduler_process',
    "    scheduler = Scheduler(",
    "KeyError: 'model.layers.55.mlp.gate_up_proj.input_scale'",
    "[2026-01-29 13:12:57] Received sigquit from a child process. It usually means the child failed.",
]
FORMS: dict[str, list[str]] = {
    "journalctl -o json": [
        json.dumps({"MESSAGE": line, "__REALTIME_TIMESTAMP": f"17696923{n:02}000000", "_PID": "42"})
        for n, line in enumerate(CRASH)
    ],
    "journalctl -o json, bytes": [json.dumps({"MESSAGE": list(line.encode()), "_PID": "42"}) for line in CRASH],
    "journalctl -o short-full": [f"Thu {stamp(n, '%Y-%m-%d %H:%M:%S')} UTC host sglang[42]: {x}" for n, x in enumerate(CRASH)],
    "journalctl -o short-unix": [f"1769692357.12345{n} host sglang[42]: {x}" for n, x in enumerate(CRASH)],
    "journalctl -o short-monotonic": [f"[ 1234.56789{n}] host sglang[42]: {x}" for n, x in enumerate(CRASH)],
    "journalctl -o with-unit": [f"Thu {stamp(n, '%Y-%m-%d %H:%M:%S')} UTC host sglang.service[42]: {x}" for n, x in enumerate(CRASH)],
    "loguru": [
        json.dumps({"text": f"2026-01-29 13:12:37.123 | INFO     | __main__:run:1 - {x}\n", "record": {"level": {"name": "INFO"}, "message": x}})
        for x in CRASH
    ],
    "structlog": [json.dumps({"event": x, "level": "info", "timestamp": "2026-01-29T13:12:37Z"}) for x in CRASH],
    "cloud export": [json.dumps({"insertId": "a", "textPayload": x, "timestamp": "2026-01-29T13:12:37.1Z", "resource": {"labels": {"pod_name": "p"}}}) for x in CRASH],
    "compose of JSON": [f"llm-1  | {json.dumps({'message': x})}" for x in CRASH],
    "logfmt": ['time="2026-01-29T13:12:37Z" level=info msg="' + x.replace("\\", "\\\\").replace('"', '\\"') + '" container=llm' for x in CRASH],
    "CSV": ['"2026-01-29T13:12:37Z","' + x.replace('"', '""') + '"' for x in CRASH],
    "gh run view": [f"serve\tRun server\t2026-01-29T13:12:37.1234567Z {x}" for x in CRASH],
    "ray, nested and coloured": [f"\x1b[36m(head pid=1)\x1b[0m \x1b[33m(SGLangEngine pid=77, ip=10.0.0.1)\x1b[0m {x}" for x in CRASH],
    "compose of a dated record of ray": [f"llm-1  | [2026-01-29 13:12:41] (SGLangEngine pid=77) {x}" for x in CRASH],
    "mail quoted twice": [f"> > {x}" for x in CRASH],
    "grep -n of a file": [f"server.log:{n + 10}:{x}" for n, x in enumerate(CRASH)],
    "grep -A": [f"{n + 10}{'-' if n else ':'}{x}" for n, x in enumerate(CRASH)],
    "ts -s": [f"00:00:0{n} {x}" for n, x in enumerate(CRASH)],
    "ts -i %.S": [f"00:00:00.12345{n} {x}" for n, x in enumerate(CRASH)],
    "server-sent events": ["data: " + json.dumps({"MESSAGE": x}) for x in CRASH],
    "mpirun": [f"[1,0]<stderr>:{x}" for x in CRASH],
    "rich": [f"[13:12:37] INFO     {x}" for x in CRASH],
    "numbered list": [f"{n + 1}. {x}" for n, x in enumerate(CRASH)],
    "loguru's text": [f"2026-01-29 13:12:37.123 | INFO     | runner:stream:42 - {x}" for x in CRASH],
    "zap": [f"1.769692357123e+09\tinfo\trunner\t{x}" for x in CRASH],
    "compose with CRLF": [f"llm  | {x}\r" for x in CRASH],
    "colours without escapes": [f"[36m(SGLangEngine pid=22)[0m {x}" for x in CRASH],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_form(form: str) -> None:
    assert told(fold("\n".join(FORMS[form]) + "\n")) == told(fold("\n".join(CRASH) + "\n"))


def test_lines_that_the_runtime_cut_are_joined() -> None:
    cut = [
        piece
        for line in CRASH
        for piece in (f"2026-01-29T13:12:37.1Z stderr P {line[:30]}", f"2026-01-29T13:12:37.1Z stderr F {line[30:]}")
    ]
    state = fold("\n".join(cut) + "\n")
    assert state.error is not None
    assert (state.error.kind, state.error.line, state.lines) == ("key_error", 11, 14)


def test_two_writers_with_the_same_ranks_are_two_servers() -> None:
    text = "\n".join(f"{name}  | {line}" for line in CRASH for name in ("llm-a", "llm-b"))
    state = fold(text + "\n")
    assert [engine.name for engine in state.engines] == ["llm-a", "llm-b"]
    assert {engine.state.outcome for engine in state.engines} == {"crashed"}


def test_ranks_of_one_server_in_several_actors_are_one_server() -> None:
    lines = [f"(RayWorker pid={10 + r}) [2026-01-29 13:12:4{n} TP{r}] {x}" for n, x in enumerate(
        ("Init torch distributed begin.", "Load weight begin. avail mem=1.0 GB")) for r in range(4)]  # fmt: skip
    state = fold("\n".join(lines) + "\n")
    assert state.engines == ()
    assert [rank.rank for rank in state.ranks] == ["TP0", "TP1", "TP2", "TP3"]


@pytest.mark.parametrize("whole_entries", [False, True])
def test_an_export_that_begins_with_the_newest(whole_entries: bool, tmp_path: Path) -> None:
    lines = [f"Jan 29, 2026 @ 13:12:{10 + n}.000\t{x}" for n, x in enumerate(CRASH)]
    if whole_entries:
        lines = [*lines[:2], "\n".join([lines[2], *CRASH[3:6]]), lines[6]]
    path = tmp_path / "export.log"
    path.write_text("\n".join(reversed(lines)) + "\n", "utf-8")
    state, bare = read(str(path)), fold("\n".join(CRASH) + "\n")
    assert state.error is not None and bare.error is not None
    assert (state.outcome, state.phase, state.error.kind) == (bare.outcome, bare.phase, bare.error.kind)
    assert "KeyError" in path.read_text("utf-8").split("\n")[state.error.line - 1]
    assert [m.name for m in state.milestones] == [m.name for m in bare.milestones]


def test_a_journal_of_fields() -> None:
    entry = "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1769692357000000\nMESSAGE={}\n_PID=4242\nPRIORITY=6\n"
    state = fold("\n".join(entry.format(line) for line in CRASH))
    assert state.error is not None
    assert (state.outcome, state.error.kind, state.phase) == ("crashed", "key_error", "weights")


def test_a_pretty_journal() -> None:
    state = fold(
        "\n".join(json.dumps({"_PID": "42", "MESSAGE": line, "PRIORITY": "6"}, indent="\t") for line in CRASH)
    )
    assert state.error is not None
    assert (state.outcome, state.error.kind, state.error.text) == ("crashed", "key_error", CRASH[5])


def test_a_traceback_in_one_entry() -> None:
    text = (
        json.dumps({"message": CRASH[0]})
        + "\n"
        + json.dumps({"message": "\n".join(CRASH[2:6]), "level": "ERROR"})
        + "\n"
    )
    state = fold(text)
    assert state.error is not None
    assert (state.error.kind, state.error.line, state.error.text) == ("key_error", 2, CRASH[5])


def test_json_without_dates_that_comes_entry_by_entry_is_opened() -> None:
    made = LogFold()
    trace = "Traceback (most recent call last):\n  File \"/x/a.py\", line 1, in f\n    f()\nKeyError: 'a.b'"
    for said in ("Load weight begin. avail mem=21.63 GB", trace):
        made.feed(LogReading("server.log", text=json.dumps({"message": said}) + "\n"), 1.0)
    error = made.state().error
    assert error is not None
    assert (error.kind, error.text) == ("key_error", "KeyError: 'a.b'")
