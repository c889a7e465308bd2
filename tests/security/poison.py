"""Recorded starts in which everything that the server or another user can choose is hostile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, Snapshot
from sgmon.recording import codec
from tests.diagnosis.replay import RECORDINGS

SECRET = "hf_PlantedPlantedPlanted1234"
NAMED = "plantedvalue12345"
#: escapes in 7 and 8 bits, the end of a bracketed paste, line ends, bidi and zero width marks, markup, commands of
#: GitHub and of a shell, HTML, secrets
HOSTILE = (
    "\x1b]0;title\x07\x1b[2J\x1b[31m\x9b31m\x1b]52;c;cHduZWQ=\x07\x1b[201~\u202eevil\u2066\u200b\ufeff\r\n"
    "::error file=x::boo\n##[add-mask]x%0A::stop-commands::y [bold red]m[/] [@click=app.quit]q[/] <script>alert(1)"
    f"</script> ```` $(touch /tmp/sgmon-ran) `id`; 'q' \"d\" | ![i](http://x/) api_key={NAMED} {SECRET} \x00\x08"
)
#: what a terminal, an editor or a reader could be deceived by
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
#: words of the model's own (states, kinds, roles, ranks) and numbers stay: the start must still be understood
_OWN_WORD = re.compile(r"[a-z_.-]{0,20}|[A-Z?]|(?:(?:DP|PP|TP|EP|PCP|DCP)\d+ ?)+|[\d.:]+|[A-Z_]+")
_KEPT_FIELDS = frozenset({"path", "identity", "change", "kind", "log_path", "family", "wait", "site_packages"})


def poisoned(value: Any) -> Any:
    """The same reading with ``HOSTILE`` in every text that is not a word of the model's own."""
    if isinstance(value, str):
        return value if _OWN_WORD.fullmatch(value) else value + HOSTILE
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(poisoned(item) for item in value)
    if isinstance(value, LogReading):
        return replace(value, text="".join(_poisoned_lines(value.text)), note=value.note and value.note + HOSTILE)
    if isinstance(value, Struct):
        changed = {
            name: poisoned(getattr(value, name))
            for name in value.__struct_fields__
            if name not in _KEPT_FIELDS and isinstance(getattr(value, name), (str, tuple, Struct))
        }
        return replace(value, **changed)
    return value


def _poisoned_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(keepends=True)):
        yield line.replace("\n", f" {HOSTILE}\n") if number % 3 == 1 else line


@lru_cache(maxsize=8)
def hostile_start(name: str) -> Snapshot:
    """The last snapshot of a recording whose readings were poisoned, where its verdict had most to say."""
    header, events = codec.read(RECORDINGS / f"{name}.jsonl.gz")
    store = Store(header.epoch)
    best = store.snapshot
    for event in events:
        if isinstance(event.reading, Struct) and event.kind != "baseline":
            event = replace(event, reading=poisoned(event.reading))
        snapshot = store.step(event)
        if event.kind != "log" and snapshot.verdict.state in (
            "stalled",
            "stopped",
            "crashed",
            "suspect",
            "will-fail",
        ):
            best = snapshot
    return best if best.server is not None else store.step(Event(store.snapshot.t + 1, "tick"))


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON-like value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_in(key)
            yield from texts_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts_in(item)


def assert_harmless(text: str, *, secrets: bool = True) -> None:
    """No escape, control or hiding character; no secret."""
    found = FORBIDDEN.search(text)
    assert found is None, f"{found[0]!r} in {text[max(0, found.start() - 60) : found.end() + 40]!r}"
    for secret in (SECRET, NAMED) if secrets else ():
        at = text.find(secret)
        assert at < 0, f"a secret in {text[max(0, at - 60) : at + 60]!r}"
