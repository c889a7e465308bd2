"""Secrets in a log that comes in pieces: the quick look at a whole piece changes nothing of what is given out."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sgmon.recording import log_mask
from sgmon.recording.log_mask import LogMask
from sgmon.text import MASK, may_have_secrets

BATCH = "[2026-11-29 16:05:07 TP3] Decode batch, #running-req: 7, #token: 20100, token usage: 0.41\n"
PARTS = (
    *(
        BATCH,
        "\n",
        "\r",
        " ",
        ":",
        "=",
        "'",
        '"',
        "--",
        "#token: 12",
        "3456789",
        "0123456",
        "token",
        "tokens:",
        "api_key",
    ),
    *(
        "=None, ",
        "secret",
        "password",
        "hf_abcdefghij",
        "klmnopqrst",
        "Bearer ",
        "abcdefgh",
        "https://u:",
        "pw",
        "@host",
    ),
    *("\x1b[36m", "\x1b[0m"),
    *("1", " 7", "2026-11-29 ", "--hf-token ", "--api-key\t", ", ", ")", "é", "3api_key5", "&"),
    *("-----BEGIN ", "PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "ſecret", "max_total_tokens=5", "key: 5"),
)


def given_out(pieces: list[str]) -> list[str]:
    mask = LogMask()
    return [mask.masked(piece) for piece in pieces]


@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=6).map("".join), max_size=6))
@example(["#token: 123456789", "0123456\n"])
@example(["token:", "\n5 x"])
@example(["--api-key 12345\n", "--token 1234567890\n", "password=12345\n"])
@example(["token: 12 abcdefgh\n", "token:  abcdefgh\n", "token=1234567890, x\n", "t0oken=abcdefgh\n"])
@example(["é api_key=abcdefgh\n", "sſecret=abcdefgh\n", "to\u212aen=abcdefgh\n", "token=\u0661\u0662, x\n"])
@example([BATCH + "api_", "key=abcd", "efgh\n" + BATCH])
def test_a_quick_look_at_a_piece_changes_nothing(pieces):
    quick = given_out(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_mask.LogMask, "_may_have_secrets", lambda self, text: True)
        assert quick == given_out(pieces)


def test_a_colour_hides_no_secret():
    """As structlog prints it: the name, the sign and the value each in a colour."""
    line = "\x1b[36mapi_key\x1b[0m=\x1b[35mabcdefgh\x1b[0m tp=2\n"
    assert given_out([BATCH + line + BATCH]) == [f"{BATCH}api_key={MASK} tp=2\n{BATCH}"]
    plain = "\x1b[36mtp_size\x1b[0m=\x1b[35m8\x1b[0m\n"
    assert given_out([plain]) == [plain]


def test_counts_of_tokens_are_no_secrets_and_a_key_is_one():
    assert not may_have_secrets(BATCH * 3)
    assert may_have_secrets(BATCH + "api_key='abcdefgh'\n" + BATCH)
    assert given_out([BATCH, "api_key='abcdefgh'\n", BATCH]) == [BATCH, f"api_key='{MASK}'\n", BATCH]
