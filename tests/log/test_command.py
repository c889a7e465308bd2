"""``sgmon log``: the JSON object, the exit codes, the words for what cannot be read."""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sgmon.commands import log
from tests.log.loading import CASES, recording

FIELDS = [
    *("schema", "file", "lines", "family", "version", "topology", "what", "state", "phase", "behind"),
    *("last_milestone", "ranks", "milestones", "progress", "error", "next", "engines", "duration_s", "longest_gap"),
]


def run(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    log.add_arguments(parser)
    return log.run(parser.parse_args(argv))


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.log"
    path.write_text(recording("cpu/tp2-sigstop-load"), "utf-8", newline="")
    return str(path)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(CASES / "real/cpu/tp2-kill9-load.log.gz"), "--json") == 5
    found = json.loads(capsys.readouterr().out)
    assert list(found) == FIELDS
    assert (found["schema"], found["family"]) == (2, "sglang")
    assert found["lines"] == 75
    assert found["topology"] == {"tp": 2, "dp": 1, "pp": 1, "ep": 1, "nnodes": 1}
    assert set(found["last_milestone"]) == {"name", "line", "rank", "t"}
    assert set(found["ranks"]) == {"TP0", "TP1"}
    assert set(found["ranks"]["TP1"]) == {"milestone", "line", "t"}
    assert set(found["milestones"][0]) == {"name", "event", "line", "rank", "t"}
    assert found["progress"] == {"name": "weights_progress", "done": 5, "total": 7}
    assert set(found["error"]) == {"kind", "line", "rank", "text", "advice"}
    assert set(found["longest_gap"]) == {"s", "after_line"}


@pytest.mark.parametrize(("case", "code"), [("sgl-22871", 0), ("sgl-4417", 4), ("sgl-7478-hang", 4), ("sgl-5416", 5)])
def test_exit_codes(case: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(CASES / f"{case}.log")) == code
    assert capsys.readouterr().out.startswith({0: "READY", 4: "UNFINISHED", 5: "CRASHED"}[code])


def test_against_a_good_start(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = str(CASES / "real/cpu/tp2-kill9-load.log.gz")
    assert run(bad, "--against", good) == 5
    text = capsys.readouterr().out
    assert "75 lines" in text and "192 lines" in text
    assert "First divergence: TP0 weights_100 is in B" in text
    run(bad, "--against", good, "--json")
    made = json.loads(capsys.readouterr().out)["against"]
    assert made["lines"] == [75, 192]
    first = made["first_divergence"]
    assert (first["name"], first["rank"], first["a"]) == ("weights_100", "TP0", None)


def test_against_itself(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(good, "--against", good) == 0
    assert "same milestones" in capsys.readouterr().out


def test_changed_arguments(good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.log"
    text = (
        Path(good)
        .read_text("utf-8")
        .replace("'tp_size': 2", "'tp_size': 8")
        .replace("'api_key': None", "'api_key': 'hush'")
    )
    other.write_text(text, "utf-8")
    run(str(other), "--against", good)
    out = capsys.readouterr().out
    assert "tp_size: 8  |  2" in out
    assert "hush" not in out


def test_stdin() -> None:
    text = (CASES / "sgl-5416.log").read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", "import argparse,sys; from sgmon.commands import log; p=argparse.ArgumentParser();"
         " log.add_arguments(p); sys.exit(log.run(p.parse_args(['-','--json'])))"],
        input=text, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"]["kind"] == "memory_unbalanced"


def bad_files(tmp: Path) -> dict[str, str]:
    (tmp / "binary").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    (tmp / "fake.gz").write_text("hello\n")
    (tmp / "cut.xz").write_bytes(lzma.compress(b"hello\n")[:7])
    return {
        str(tmp / "none"): "No such file",
        str(tmp): "is a directory",
        "/dev/null": "no regular file",
        str(tmp / "binary"): "is binary",
        str(tmp / "fake.gz"): "no gzip",
        str(tmp / "cut.xz"): "is damaged",
    }


def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, words in bad_files(tmp_path).items():
        assert run(path) == 2, path
        said = capsys.readouterr()
        assert said.out == ""
        assert words in said.err
        assert said.err.count("\n") == 1
        assert "Traceback" not in said.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "secret.log"
    path.write_text("x")
    path.chmod(0)
    assert run(str(path)) == 2
    assert "Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "pack"),
    [("server.log.1.xz", lzma.compress), ("server.log.2.bz2", bz2.compress), ("server.log-20260101", gzip.compress)],
)
def test_what_a_rotation_has_compressed_is_read_whatever_its_name(name, pack, tmp_path, capsys) -> None:
    text = gzip.decompress((CASES / "real/cpu/tp2-kill9-load.log.gz").read_bytes())
    (tmp_path / name).write_bytes(pack(text))
    assert run(str(tmp_path / name)) == 5
    assert "TP1" in capsys.readouterr().out


def test_zstd_is_unpacked_or_told_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.log.zst").write_bytes(b"\x28\xb5\x2f\xfd\x04\x00\x31\x00\x00hello\n\xea\x6c\x5c\x5f")
    assert run(str(tmp_path / "s.log.zst")) == 2
    assert sys.version_info >= (3, 14) or "zstd -dc FILE | sgmon log -" in capsys.readouterr().err


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_what_is_damaged_inside_is_read_up_to_there(pack, tmp_path, capsys) -> None:
    """bz2 and gzip raise an OSError for it, which is no failure of the disk."""
    data = bytearray(pack(b"".join(b"line %d of a log\n" % (number * number) for number in range(400_000))))
    data[-len(data) // 4] ^= 0xFF
    data[-len(data) // 5] ^= 0xFF
    (tmp_path / "server.log.1").write_bytes(data)
    assert run(str(tmp_path / "server.log.1")) == 4
    assert "is cut or damaged" in capsys.readouterr().err


def test_a_cut_gzip_is_read_as_far_as_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.log.gz"
    path.write_bytes((CASES / "real/cpu/tp2-debug.log.gz").read_bytes()[:-2000])
    assert run(str(path)) in (0, 4)
    assert "cut or damaged" in capsys.readouterr().err


def test_an_empty_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.log").write_text("")
    assert run(str(tmp_path / "empty.log")) == 4
    assert "empty" in capsys.readouterr().out


def test_no_terminal_library_is_loaded() -> None:
    code = "import sys, sgmon.commands.log; print([m for m in ('textual','rich','httpx','pynvml','psutil') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert done.stdout.strip() == b"[]"
