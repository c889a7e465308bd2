"""Foreign text never reaches the terminal unescaped, and never takes a secret into a report."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon import text
from sgmon.text import MASK, clean, is_secret_name, mask, masked_argv, safe


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text", "plain text"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x9b31mred", "red"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("tab\there", "tab     here"),
        ("bell\x07", "bell\ufffd"),
        ("evil \u202etxt", "evil \ufffdtxt"),
        ("[TP0] [/] [bold]", "[TP0] [/] [bold]"),
        ("漢字 █▌", "漢字 █▌"),
        ("two\nlines", "two lines"),
    ],
)
def test_clean_leaves_text_and_takes_control(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_clean_marks_what_it_cuts() -> None:
    assert clean("abcdef", 4) == "abc…"
    assert clean("abcd", 4) == "abcd"


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=()), max_size=200))
def test_nothing_that_moves_a_cursor_survives(text: str) -> None:
    out = clean(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) <= 0x9F or c in "\u202e\u2028" for c in out)


@pytest.mark.parametrize(
    "text",
    [
        "api_key='s3cret-value'",
        "{'api_key': 's3cret-value', 'tp_size': 2}",
        '"admin_api_key": "s3cret-value"',
        "--api-key s3cret-value --tp 8",
        "--api-key=s3cret-value",
        "HF_TOKEN=s3cret-value",
        "AWS_SECRET_ACCESS_KEY=s3cret-value",
        "Authorization: Bearer s3cret-value",
        "{'Authorization': 'Bearer s3cret-value'}",
        "http://user:s3cret-value@host/path",
        "ssl_keyfile_password='s3cret-value'",
    ],
)
def test_named_secrets_are_masked(text: str) -> None:
    out = mask(text)
    assert "s3cret-value" not in out
    assert MASK in out


@pytest.mark.parametrize(
    "secret",
    ["hf_abcdefghijklmnopqrst", "sk-abcdefghijklmnopqrst", "AKIAABCDEFGHIJKLMNOP", "ghp_abcdefghijklmnopqrstuv"],
)
def test_secrets_known_by_their_shape_are_masked(secret: str) -> None:
    assert secret not in mask(f"downloading with {secret} now")


@pytest.mark.parametrize(
    "text",
    [
        "max_total_num_tokens=4096, chunked_prefill_size=4096",
        "KV Cache is allocated. #tokens: 4096",
        "max_prefill_tokens=16384",
        "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.01",
        "api_key=None",
        "tokenizer_path='models/tiny'",
        "eos_token_id=2",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


def test_names() -> None:
    assert is_secret_name("--api-key".replace("-", "_"))
    assert is_secret_name("HF_TOKEN")
    assert not is_secret_name("max_new_tokens")
    assert not is_secret_name("tokenizer_mode")


PIECES = st.sampled_from(
    [
        *("api_key", "APIKEY", "tokens", "max_tokens", "secret", "passwd", "private_key", "--token", "--", "'", '"', "="),
        *(":", " ", ",", "{", ")", "&", "6", "1234567890", "None", "\\", "hf_" + "a" * 17, "sk-" + "b1" * 9, "x", "_", "."),
        *("glpat-" + "c" * 16, "-----BEGIN PRIVATE KEY-----", "ſecret", "toKen", "é", "\n", "İ", "²", "token ids", "ghp_"),
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_masking_where_it_can_begin_is_masking_everywhere(sample: str) -> None:
    plain = text._URL_PASSWORD.sub(_masked, text._SHAPES.sub(MASK, sample))
    assert mask(sample) == text._NAMED.sub(text._mask_named, text._BEARER.sub(_masked, plain))


def _masked(found: re.Match[str]) -> str:
    return found["head"] + MASK


@pytest.mark.parametrize("limit", range(8, 60))
def test_a_secret_that_is_cut_shows_none_of_itself(limit: int) -> None:
    text = "cannot load with hf_abcdefghijklmnopqrstuvwxyz of the hub"
    shown = safe(text, limit)
    assert len(shown) <= limit
    assert "hf_a" not in shown


def test_a_colour_in_a_secret_hides_it_not() -> None:
    assert safe("\x1b[36mapi_key\x1b[0m=\x1b[35mabcdefgh\x1b[0m") == f"api_key={MASK}"
    assert safe("hf_abcdefgh\x1b[1mijklmnopqrstuv") == MASK


def test_nobody_cuts_before_masking() -> None:
    """The one way to have text that is cleaned, masked and cut is ``safe``."""
    root = Path(text.__file__).parents[1]
    sources = {
        path: path.read_text() for part in ("sgmon", "widgets", "tui_app") for path in (root / part).rglob("*.py")
    }
    assert len(sources) > 300
    wrong = [
        path.name for path, source in sources.items() if re.search(r"\bmask\(\s*clean\(|\bclean\(\s*mask\(", source)
    ]
    assert set(wrong) == {"text.py"}


@pytest.mark.parametrize("begin", ["\x9b1 ", "\x9b", "\x1b[15: ", "\x1b[", "\x1b ", "\x90"])
@pytest.mark.parametrize(
    "told", ["api_key='hunter2hunter2'", "--api-key hunter2hunter2", "api_key=\x1b[31mhunter2hunter2"]
)
def test_a_sequence_without_an_end_hides_no_name_of_a_secret(begin: str, told: str) -> None:
    """It takes the first letters of what follows with it, in a terminal, too."""
    shown = safe(f"x {begin}{told} y")
    assert "hunter2" not in shown
    assert masked_argv([f"x{begin}{told}"]) == (safe(f"x{begin}{told}"),)
