"""Mutated real logs: nothing is raised, no escape byte and no secret comes out.

``SGMON_FUZZ_LINES=1000000`` for a long run.
"""

from __future__ import annotations

import os
import random

import msgspec
import pytest

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.summary import as_json, text
from sgmon.model import LogReading
from sgmon.servers.sglang.log import RULES
from tests.log.loading import RECORDINGS, case_names, case_text, recording

LINES = int(os.environ.get("SGMON_FUZZ_LINES", "6000"))
SECRETS = ("hunter2hunter2", "sk-live0123456789abcdef", "hf_abcdefghijklmnopqrst")
NASTY = (
    "\x1b[31m", "\x1b]0;x\x07", "\x9b1m", "\x00", "\r", "\r\n", "\x7f", "\u202e", "\ufeff", "\ufffd", "%|", "100%|",
    "Traceback (most recent call last):", "server_args=ServerArgs(", "server_args={", "[2026-13-99 99:99:99 TP0] ",
    "1/0 [", "9" * 400, "0/0 ", "9/8 [", "[rank", "[Gloo] Rank ", "(" * 200, "'" * 99, "| " * 50, "TP" * 30, "\u2028",
)  # fmt: skip
#: Put in last, so that no later cut parts a value from the name that makes it a secret.
TOLD = (
    f" api_key='{SECRETS[0]}' ",
    f" Authorization: Bearer {SECRETS[1]} ",
    f" {SECRETS[2]} ",
    f" --api-key {SECRETS[0]} ",
)


def texts() -> list[str]:
    names = [f"{path.parent.name}/{path.name.removesuffix('.log.gz')}" for path in RECORDINGS]
    return [*(recording(name) for name in names), *(case_text(name) for name in case_names())]


def mutated(lines: list[str], rng: random.Random) -> list[str]:
    made = list(lines)
    for _ in range(max(3, len(made) // 4)):
        at = rng.randrange(len(made))
        line = made[at]
        cut = rng.randrange(len(line) + 1)
        other = made[rng.randrange(len(made))]
        made[at] = rng.choice(
            [
                line[:cut] + rng.choice(NASTY) + line[cut:],
                line[:cut] + other[rng.randrange(len(other) + 1) :],  # torn between processes
                line[:cut],
                line + other,
                line[:cut] + chr(rng.choice([0, 7, 27, 155, 0x2066, 0x10FFFF, 0xDC80])) + line[cut:],
                other,
            ]
        )
    if rng.random() < 0.3:
        rng.shuffle(made)
    for at in rng.sample(range(len(made)), len(made) // 10):
        cut = rng.randrange(len(made[at]) + 1)
        made[at] = made[at][:cut] + rng.choice(TOLD) + made[at][cut:]
    return made


def assert_clean(shown: str) -> None:
    assert not any(code in shown for code in ("\x1b", "\x9b", "\x00", "\x07", "\r", "\u202e"))
    for secret in SECRETS:
        at = shown.find(secret)
        assert at < 0, shown[max(0, at - 300) : at + 100]


@pytest.mark.timeout(0 if LINES > 100_000 else 120)
def test_mutated_logs() -> None:
    rng = random.Random(2026)
    sources = texts()
    done = 0
    while done < LINES:
        lines = mutated(rng.choice(sources).split("\n")[:600], rng)
        whole = "\n".join(lines)
        made = LogFold()
        at = 0
        while at < len(whole):
            size = rng.choice([1, 17, 4096, 65_536])
            made.feed(LogReading("l", text=whole[at : at + size]), 1.0)
            at += size
            if rng.random() < 0.02:
                made.state()
        state = made.state()
        assert_clean(repr(msgspec.structs.replace(state, last_line=None)).replace("\\n", ""))
        assert_clean(text(state, "l").replace("\n", ""))
        assert_clean(repr(as_json(state, "l")))
        for number, line in enumerate(lines[:60]):
            assert_clean(describe(number, line, RULES).text)
        done += len(lines)
