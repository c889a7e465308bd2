"""Bad input gets one clear sentence, what to try, and the right exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tui_app.cli import main


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["status", "--port", "abc"], 2, "no number"),
        (["status", "--port", "70000"], 2, "out of range"),
        (["status", "--pid", "-4"], 2, "out of range"),
        (["status", "--pid", "x"], 2, "no number"),
        (["status", "--log", "/no/such/file"], 2, "no log"),
        (["status", "--log", "/tmp"], 2, "directory"),
        (["status", "--proc-root", "/no/such/proc"], 2, "no /proc"),
        (["status", "--interval", "fast"], 2, "duration"),
        (["wait", "--timeout", "soon"], 2, "duration"),
        (["status", "--pid", "4194303"], 6, "no process"),
        (["record", "/no/such/file.gz", "--pid", "4194303"], 6, "no process 4194303"),
        (["record", __file__], 2, "is there already: give another name, or --force to write over it"),
        (["record", __file__, "--force", "--pid", "4194303"], 6, "no process 4194303"),
        (["report", "--pid", "4194303"], 6, "no process 4194303"),
        (["stauts"], 2, "did you mean: sgmon status?"),
        (["--prot", "30000"], 2, "no option '--prot'; did you mean --port?"),
        (["--qqqq", "30000"], 2, "no option '--qqqq'; try: sgmon --help"),
        (["report", "-o", "incident.tar.gz"], 2, "a report is a zip"),
        (["wait", "--report", "incident.tgz"], 2, "a report is a zip"),
        (["runs", "99999"], 2, "no start 99999"),
        (["diff", "/no/such/a", "/no/such/b"], 2, "cannot read"),
        # a FILE that cannot be read is wrong usage, whichever command is given it
        (["report", "--recording", "/no/such"], 2, "cannot open"),
        (["replay", "/no/such"], 2, "cannot open"),
        (["status", "--interval", "-1"], 2, "--interval -1 is out of range (0.2 to 60 seconds)"),
        (["diff", "/no/such", "/no/such"], 2, "cannot read"),
        (["log", "/no/such"], 2, "cannot read"),
        (["replay", "/no/such/recording"], 2, "cannot open"),
        (["diff", "/no/such/a", "/no/such/b"], 2, "no id of `sgmon runs`"),
        (["runs", "--limit", "-1"], 2, "--limit -1 is out of range"),
        (["replay", __file__], 2, "sgmon log FILE"),
        (["check", "--", "sleep", "1"], 2, "'sleep 1' starts no SGLang or vLLM server that sgmon knows"),
        (["demo", "stuck-rnak"], 2, "no scenario 'stuck-rnak'; there are: healthy"),
        (["run", "--", "no-such-program"], 2, "no program 'no-such-program'"),
        (["run", "--"], 2, "nothing to run"),
    ],
)
def test_bad_input(argv: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == code
    said = capsys.readouterr().err
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "argv",
    [
        ["serve", "--no-auto-evidence"],
        ["report", "--no-auto-evidence"],
        ["stacks", "--watch-dir", "/tmp"],
        ["stacks", "--no-http"],
        ["doctor", "--interval", "2"],
    ],
    ids=" ".join,
)
def test_an_option_that_a_command_would_ignore_is_none_of_its_own(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)
    assert f"no option '{argv[1]}'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([argv[0], "--help"])
    assert argv[1] not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["wait", "--timout", "30m"], "sgmon wait: no option '--timout'; did you mean --timeout?"),
        (["status", "--theme", "nord"], "sgmon status: no option '--theme'; try: sgmon status --help"),
        (["--bogus"], "sgmon: no option '--bogus'; try: sgmon --help"),
        (["log"], "sgmon log: FILE is missing; try: sgmon log --help"),
        (["diff"], "sgmon diff: A and B are missing; try: sgmon diff --help"),
        (["log", "a.log", "b.log"], "sgmon log: 'b.log' is one word too many; try: sgmon log --help"),
        (["runs", "yesterday"], "sgmon runs: id 'yesterday' is no number; try: sgmon runs --help"),
        (["--host"], "sgmon: --host needs a value; try: sgmon --help"),
        (["completion", "tcsh"], "sgmon completion: shell: invalid choice: 'tcsh' (choose from"),
    ],
)
def test_a_wrong_word_gets_one_sentence(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(words)
    assert len(said.strip().splitlines()) == 1


def test_a_pid_that_is_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stranger:
        assert main(["status", "--pid", str(stranger.pid)]) == 6
        said = capsys.readouterr().err
        assert stranger.stdin is not None
        stranger.stdin.close()
    assert str(stranger.pid) in said
    assert "SGLang" in said


@pytest.mark.parametrize("argv", [["status", "--json"], ["wait", "--json"], ["--json"]])
def test_no_such_process_as_json(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*argv, "--pid", "4194303"]) == 6
    said = capsys.readouterr()
    assert "4194303" in json.loads(said.out)["error"]["text"]
    assert said.err == ""


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--theme", "nord", "demo", "--list"], "stuck-rank"),
        (["--ascii", "demo", "--theme=nord", "--list"], "stuck-rank"),
        (["version"], "sgmon "),
    ],
)
def test_options_before_the_command(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"), [(["-V"], "sgmon "), (["help"], "commands:"), (["help", "wait"], "--on-stall")]
)
def test_help_and_version(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 0
    assert words in capsys.readouterr().out


def test_a_binary_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.bin"
    log.write_bytes(b"\x1f\x8b" + bytes(range(256)) * 20)
    assert main(["status", "--log", str(log)]) == 2
    assert "binary" in capsys.readouterr().err


def test_an_unknown_flag_is_usage() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tui_app.cli", "--no-such-flag"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 2
    assert "--no-such-flag" in run.stderr


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "sgmon status"),
        (["demo"], "sgmon demo --server-only"),
        (["run", "--", "true"], "sgmon run --wait -- CMD"),
    ],
)
def test_the_dashboard_without_a_terminal_says_what_to_try(argv: list[str], words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tui_app.cli", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 2
    assert words in run.stderr
