"""Choices that are kept: which one wins, and what an error says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sgmon.config import ConfigError, as_toml, choices, keep_theme, keymap, theme_path, use
from tui_app.cli import full_parser, main, watch_parser


def write(folder: Path, text: str) -> Path:
    path = folder / "sgmon" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SGMON_THEME", "SGMON_ASCII", "SGMON_INTERVAL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interval(*words: str) -> str:
        parser = watch_parser()
        use(parser)
        return str(parser.parse_args(words).interval)

    assert interval() == "1"
    write(home, "interval = 2")
    assert interval() == "2"
    monkeypatch.setenv("SGMON_INTERVAL", "3")
    assert interval() == "3"
    assert interval("--interval", "4") == "4"


def test_a_switch_that_turns_off_is_told_by_what_it_turns_off(home: Path) -> None:
    write(home, "mouse = false\nascii = true")
    parser = watch_parser()
    use(parser)
    args = parser.parse_args([])
    assert args.no_mouse and args.ascii and not args.no_gpu


def test_each_choice_says_where_it_came_from(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(home, "ascii = true")
    monkeypatch.setenv("SGMON_THEME", "light")
    assert main(["config"]) == 0
    rows = {line.split()[0]: line.split()[1:3] for line in capsys.readouterr().out.splitlines()}
    assert rows["ascii"] == ["true", str(path)]
    assert rows["theme"] == ["light", "SGMON_THEME"]
    assert rows["gpu"] == ["true", "default"]


def test_a_theme_chosen_on_the_screen_is_kept_unless_a_file_or_variable_names_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    assert keep_theme("nord") == ""
    main(["config"])
    assert ["theme", "nord", str(theme_path())] == capsys.readouterr().out.split()[:3]
    parser = watch_parser()
    use(parser)
    assert parser.parse_args([]).theme == "nord"
    path = write(home, 'theme = "light"')
    assert keep_theme("dracula") == str(path)
    assert next(one.value for one in choices() if one.option.name == "theme") == "light"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("intervall = 2", "did you mean 'interval'[?]"),
        ("ascii = 1", "true or false"),
        ("interval = [", "not TOML"),
        ("interval = true", "a text or a number"),
        ('interval = "often"', "a duration such as 1, 90s, 30m or 2h, not 'often'"),
        ('[keys]\ntheme = "dark"', "'theme' stands below .keys."),
    ],
)
def test_an_error_names_the_file_and_what_would_do(
    home: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = write(home, text)
    with pytest.raises(ConfigError, match=words):
        choices()
    assert main(["doctor"]) == 2
    said = capsys.readouterr().err
    assert str(path) in said and len(said.splitlines()) <= 2


def test_the_keys_of_the_file_are_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, '[keys]\n"overview.why" = "f5"')
    assert main(["config"]) == 0
    assert "keys.overview.why  f5 " in capsys.readouterr().out


def test_the_file_that_is_written_is_read_as_it_was_chosen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGMON_INTERVAL", "5")
    assert main(["config", "--write"]) == 0
    monkeypatch.delenv("SGMON_INTERVAL")
    kept = {one.option.name: (one.value, one.source) for one in choices()}
    assert kept["interval"] == ("5", str(home / "sgmon" / "config.toml"))
    assert kept["theme"] == ("auto", "default")
    assert "# [keys]" in list(as_toml(choices(), {})), "what is added at the end is an option, not a key"


def test_writing_again_keeps_the_keys(home: Path) -> None:
    write(home, 'theme = "dark"\n[keys]\n"overview.why" = "y"\n"log.search" = "ctrl+f,\\\\"')
    kept = keymap()
    assert main(["config", "--write"]) == 0
    assert keymap() == kept and len(kept) == 2


def test_keys_are_read_by_their_id(home: Path) -> None:
    write(home, '[keys]\n"overview.why" = "y"')
    assert keymap() == {"overview.why": "y"}


def test_completion_knows_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "--log-command" in script and "replay" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "doctor" in full_parser().format_help()


@pytest.mark.parametrize(
    ("shell", "log_file"),
    [
        ("bash", "_shtab_sgmon_log_pos_0_COMPGEN=_shtab_compgen_files"),
        ("zsh", "bz2 and zst are unpacked:_files"),
        ("fish", "_shtab_sgmon_using log; and test $_shtab_sgmon_npos -eq 0' -ka \"(__fish_complete_path"),
    ],
)
def test_completion_gives_files_and_what_its_help_says_loads_it(
    shell: str, log_file: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where the shell is there: a script that is not registered as the help says completes nothing (zsh, by source)."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert log_file in script
    if shutil.which(shell) is None:
        return
    (tmp_path / "script").write_text(script)
    asked = {
        "bash": "source ./script; complete -p sgmon",
        "zsh": 'autoload -U compinit; compinit -u -d dump; eval "$(cat script)"; print $_comps[sgmon]',
        "fish": "cat script | source; complete -C 'sgmon log scr'",
    }
    known = {"bash": "_shtab_sgmon", "zsh": "_shtab_sgmon", "fish": "script"}
    done = subprocess.run([shell, "-c", asked[shell]], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert known[shell] in done.stdout, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_scenarios_themes_and_help(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("warmup-stuck", "solarized-light", "version"):
        assert word in script
    assert "warmup-stuck" not in full_parser().format_help()


def test_the_man_page_has_every_command_and_key() -> None:
    from tools.write_man import page
    from tui_app.cli import COMMANDS

    made = page()
    assert all(f".SS sgmon {name}\n" in made for name in COMMANDS)
    assert "(overview.why)" in made and "SGMON_THEME" in made
    assert "exit codes" in made and "{livez,readyz,startupz}" in made
    assert made.count("any process of the server") == 1, "an option that many commands have is explained once"


def test_the_help_fits_into_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_app.cli import COMMANDS

    monkeypatch.setenv("COLUMNS", "80")
    for words in (["--help"], *([name, "--help"] for name in COMMANDS)):
        with pytest.raises(SystemExit):
            main(words)
        long = [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]
        assert not long, words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('theme = "drak"', "no theme 'drak'; there are: auto, dark, light,"),
        ("theme = dark", 'A text stands in quotes: theme = "dark"'),
        ("interval = 0", "config.toml: interval is out of range (0.2 to 60 seconds): '0'"),
        ('[keys]\nwhi = "y"', "no key is called 'whi'; did you mean 'overview.why'?"),
        ('[keys]\n"overview.why" = "strg+y"', "there is no key 'strg+y'"),
    ],
)
def test_a_mistake_in_the_file_is_told_where_the_file_is_shown(
    text: str, words: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, text)
    assert main(["config"]) == 2
    said = capsys.readouterr().err
    assert said.count("sgmon: ") == 1 and words in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"overview.why" = "q"', "'overview.why': the key 'q' is that of 'overview.quit' too (overview)"),
        ('"app.help" = ":"', "'app.help': the key 'colon' is that of 'app.palette' too (anywhere)"),
        ('"overview.why" = "y"\n"overview.servers" = "y"', "the key 'y' is that of"),
    ],
)
def test_a_key_that_does_something_else_there_is_told(
    text: str, words: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, f"[keys]\n{text}")
    assert main(["config"]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("sgmon: ") == 1


def test_two_keys_that_change_places_are_no_mistake(home: Path) -> None:
    write(home, '[keys]\n"overview.why" = "s"\n"overview.servers" = "v"')
    assert main(["config"]) == 0


@pytest.mark.parametrize("text", ["themee = 1", 'interval = "fast"', "x = ["])
def test_a_file_that_cannot_be_read_is_told_once(text: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, text)
    assert main(["config"]) == 2
    assert capsys.readouterr().err.count("config.toml") == 1


def test_a_theme_that_there_is_not_is_told_with_who_names_it(
    monkeypatch: pytest.MonkeyPatch, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SGMON_THEME", "blue")
    assert main(["config"]) == 2
    assert "SGMON_THEME: no theme 'blue'" in capsys.readouterr().err


def test_the_ids_of_the_keys_are_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--keys"]) == 0
    rows = capsys.readouterr().out.splitlines()
    why = next(row for row in rows if row.startswith("overview.why "))
    assert " ".join(why.split()) == "overview.why v why: all evidence, all next steps, history (overview)"
    write(home, '[keys]\n"overview.why" = "v,y"')
    assert main(["config"]) == 0
