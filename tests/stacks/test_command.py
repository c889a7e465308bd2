"""``sgmon stacks``: what it asks, prints and returns."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import msgspec
import pytest

from sgmon.analyse.stacks.causes import match
from sgmon.analyse.stacks.conditions import Facts
from sgmon.analyse.stacks.ras_forms import parse
from sgmon.analyse.stacks.refusals import SCOPE_1
from sgmon.analyse.stacks.summary import summarize, summary_lines
from sgmon.commands import NO_SERVER, USAGE, stacks
from sgmon.commands.cause_book import read_user_causes
from sgmon.commands.watching import UsageError
from sgmon.model import CauseHit, Process, Role
from tests.ras.fake import data
from tests.stacks.stack_files import BOOK, recorded


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    stacks.add_arguments(parser)
    return parser.parse_args(words)


def tree_of(*ranks: str) -> tuple[Process, ...]:
    launcher = Process(100, 1, 1, Role.LAUNCHER)
    return (launcher, *(Process(101 + n, 100, 1, Role.WORKER, rank=rank) for n, rank in enumerate(ranks)))


def test_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "stat").write_text("1 (init) S 0 1 1 0 -1 4194560 0 0 0 0 1 1 0 0 20 0 1 0 1 0 0 0\n")
    assert stacks.run(arguments("--proc-root", str(tmp_path))) == NO_SERVER
    assert "no SGLang or vLLM server found" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("--samples", "0"), ("--samples", "x"), ("--pid", "-3"), ("--proc-root", "/nowhere")]
)
def test_wrong_usage(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert stacks.run(arguments(*words)) == USAGE
    assert capsys.readouterr().err.startswith("sgmon: ")


def test_which_processes() -> None:
    processes = tree_of("TP0", "TP1", "TP2")
    everything = stacks._targets(processes, [], 100)
    assert (everything.ranks, everything.others) == ((101, 102, 103), (100,))
    assert stacks._targets(processes, ["2", "TP0"], 100).ranks == (103, 101)
    assert stacks._targets(tree_of("DP0 TP1"), ["dp0 tp1"], 100).ranks == (101,)
    assert stacks._targets(tree_of(""), ["0"], 100).ranks == (101,)
    assert stacks._targets(processes[:1], [], 100).ranks == (100,)
    with pytest.raises(UsageError, match="no rank '7' here: there are TP0, TP1, TP2"):
        stacks._targets(processes, ["7"], 100)


def test_native_says_what_it_costs_before() -> None:
    text = argparse.ArgumentParser()
    stacks.add_arguments(text)
    assert "stop each process for 0.4 to 3.4 seconds" in " ".join(text.format_help().split())


def test_text_of_a_hang() -> None:
    dumps = [recorded("load_tp0_barrier.json", f"TP{n}", sample) for n in (0, 2, 3) for sample in range(2)]
    dumps += [recorded("weights_loader.json", "TP1", sample) for sample in range(2)]
    dumps.append(recorded("launcher_waits.json", "", role=Role.LAUNCHER, pid=7))
    ras = parse(data("stopped.json"), "localhost:28028")
    facts = Facts(dumps=tuple(dumps), processes=(Process(1001, 7, 1, Role.WORKER, rank="TP1", state="T"),), ras=ras)
    found = summarize(7, "sglang", "0.5.17", dumps, match(facts, BOOK), ras)
    text = "\n".join(summary_lines(found))
    for words in (
        "SGLang 0.5.17, pid 7; by its stacks in the weight load",
        "[TP0,2-3] | missing TP1",
        "TP1 · 1 rank · OUTLIER · in the weight load; last seen in ",
        "launcher (pid 7) waits in the launcher's wait for its ranks",
        "95 % · a rank is stopped",
        "$ kill -CONT 1001",
        "rank 1 (pid 574, GPU 1, 192.0.2.2) does not answer",
    ):
        assert words in text, words
    assert text.index("95 % ·") < text.index("80 % ·")
    assert "tree (outermost first)" in "\n".join(summary_lines(found, full=True))
    again = json.loads(msgspec.json.encode(found))
    assert again["sgmon_stacks"] == 2
    assert [entry["ranks"] for entry in again["classes"]] == [["TP1"], ["TP0", "TP2", "TP3"]]


def test_text_without_any_stack() -> None:
    from sgmon.model import Missing, StackDump

    missing = Missing("stack", SCOPE_1.why, SCOPE_1.remedy())
    dump = StackDump(5, "TP0", Role.WORKER, 0.0, error=SCOPE_1.why, missing=(missing,))
    text = "\n".join(summary_lines(summarize(5, "sglang", "", [dump])))
    assert "no stack of TP0" in text
    assert "  docker: --cap-add SYS_PTRACE (the sysctl is the host's)" in text
    assert "still seen: wchan" in text


def test_slow_is_not_called_a_cause() -> None:
    hit = CauseHit("jit-build", "kernels are being compiled", 0.9, slow=True)
    text = "\n".join(summary_lines(summarize(5, "sglang", "", [recorded("jit_tp0_ninja.json")], [hit])))
    assert "why it takes long" in text
    assert "(slow, no hang)" in text


def test_users_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_user_causes() == ((), "")
    path = tmp_path / "sgmon" / "causes.toml"
    path.parent.mkdir()
    path.write_text('[[cause]]\nid = "mine"\ntitle = "t"\nwhen = [{ log = "x" }]\n')
    (cause,), mistake = read_user_causes()
    assert (cause.id, cause.by_user, mistake) == ("mine", True, "")
    path.write_text("[[cause]]\nid = 'mine'\ntitle = 't'\n")
    causes, mistake = read_user_causes()
    assert causes == ()
    assert "cause mine: Object missing required field `when`" in mistake
    path.write_bytes(b"\xff\xfe")
    assert read_user_causes()[1]
    path.unlink()
    path.mkdir()
    assert "cannot be read" in read_user_causes()[1]


@pytest.mark.slow
def test_on_a_simulated_server(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Four real ranks at the gate: one class, unchanged, by design."""
    import threading

    import sgmon.demo as demo

    with demo.start("gate") as server:
        pause = threading.Event()
        for _ in range(300):
            if b"Gated launch" in Path(server.log).read_bytes():
                break
            pause.wait(0.1)
        assert stacks.run(arguments("--pid", str(server.pid), "--samples", "2", "--json")) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert [entry["ranks"] for entry in found["classes"]] == [["TP0", "TP1", "TP2", "TP3"]]
    assert found["classes"][0]["moving"] is False
    assert found["phase"] == "dist_init"
    assert [hit["id"] for hit in found["causes"]] == ["gate"]
