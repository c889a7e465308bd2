"""Foreign text made safe: escapes neutralised, secrets masked.

Everything that another program wrote (log lines, process titles, stacks, paths) passes through
``clean`` before it may reach a terminal, and through ``mask`` before it may reach a report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import AnyStr

from sgmon.patterns import regex

MASK = "********"

# CSI, OSC (ended by BEL or ST), DCS/SOS/PM/APC strings, and two-byte escapes, in 7 and 8 bit form.
_ESCAPE = regex(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# C0 and C1 controls, line separators, and the marks that reorder or hide text (bidi, zero width, BOM).
_CONTROL = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)

_SECRET_NAME = (
    r"[\w.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|private[_-]?key|access[_-]?key)s?"
    r"(?![\w.-])"
)
_SECRET = regex(_SECRET_NAME, re.IGNORECASE)
_SAFE_NAME = regex(
    r"(?:max_?|num_?|n_?|total_|prefill_|chunked_|context_|input_|output_|new_|cached_|eos_|bos_|pad_|stop_|"
    r"special_|draft_|per_)[\w]*tokens?$|tokens?$|[\w]*_tokens$|[\w]*token_id[s]?$",
    re.IGNORECASE,
)
_COUNTS = regex(r"tokens?$", re.IGNORECASE)
_QUOTED = r"(?:'(?:[^'\\]|\\.)*(?:'|\\?$)|\"(?:[^\"\\]|\\.)*(?:\"|\\?$))"  # "$": of a cut line
_NAMED = regex(
    r"(?<![\w.-])(?P<name>(?P<flag>--)?['\"]?" + _SECRET_NAME + r"['\"]?)"
    r"(?P<sep>\s*[=:]\s*|(?(flag)\s+(?=[^\s-])|(?!)))"  # a blank only after a flag: "token ids" is prose
    r"(?P<value>" + _QUOTED + r"|(?!--)[^\s,;)}\]'\"&]+(?:(?<==)" + _QUOTED + r")?)",
    re.IGNORECASE,
)
_SHAPES = regex(
    r"\bhf_[A-Za-z0-9]{16,}"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
)
_BEARER = regex(r"(?P<head>\b(?:authorization['\"]?\s*[:=]\s*['\"]?)?(?:bearer|basic)\s+)(?P<v>[^\s'\",]{6,})", re.I)
_URL_PASSWORD = regex(r"(?P<head>[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)(?P<v>[^\s/@'\"]+)(?=@)", re.I)
#: A shorter value is masked where it stands behind its name alone: the same letters may be anywhere.
_LEAST_SECRET = 6
#: A named secret has one of these words, and the end of such a name before a separator. A word in prose is none,
#: unless flags are about; neither is a count ("#token: 6").
_WORDS = ("key", "token", "secret", "passw", "passphrase", "credential")
_NAME_END = (
    r"(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|private[_-]?key|access[_-]?key)s?"
    r"(?![\w.-])(?=['\"]?"
)
_ENDS = {
    (flags, low): regex(
        _NAME_END + (r"(?:\s*[=:]|\s+[^\s-]))" if flags else r"\s*[=:])"), 0 if low else re.IGNORECASE
    )
    for flags in (False, True)
    for low in (False, True)
}
_COUNT = regex(r"tokens?['\"]?\s*[=:]\s*\d{1,9}(?:[\s,;)}\]'\"&]|$)", re.IGNORECASE)
#: "token" at the end of a name that a value follows, and no count. In lower case; True: flags are about.
_TOKEN = r"token(?!s?['\"]?\s*[=:]\s*\d{1,9}(?:[\s,;)}\]'\"&]|$))s?(?![\w.-])(?=['\"]?"
_NO_COUNT = {True: regex(_TOKEN + r"(?:\s*[=:]|\s+[^\s-]))"), False: regex(_TOKEN + r"\s*[=:])")}
#: The same count where its digits were taken out. A quoted value or one behind blanks alone may be a word.
_SHAPE_COUNT = regex(r"tokens?['\"]?\s*[=:]\s*(?:[,;)}\]&]|$)")
_FLAG = regex(r"--['\"]?[\w.-]*(?:key|token|secret|passw|passphrase|credential)")
#: Letters that re takes for an ASCII one where case does not count.
_FOLDED = ("\u017f", "\u212a", "\u0130", "\u0131")
#: Every shape begins with one of these.
_SHAPE_HINTS = ("hf_", "sk-", "AKIA", "ASIA", *(f"gh{c}_" for c in "pousr"), "glpat-", "xox", "eyJ", "-----BEGIN ")


def without_prefix(text: AnyStr, prefix: AnyStr) -> AnyStr:
    """``str.removeprefix``, which a collector's Python 3.8 lacks."""
    return text[len(prefix) :] if text.startswith(prefix) else text


def without_suffix(text: AnyStr, suffix: AnyStr) -> AnyStr:
    """``str.removesuffix``, likewise."""
    return text[: len(text) - len(suffix)] if text.endswith(suffix) else text


def clean(text: str, limit: int | None = None) -> str:
    """``text`` without escape sequences and control characters (tabs become spaces); cut at ``limit`` with a mark."""
    if not text.isprintable():
        if "\x1b" in text or any("\x80" <= c <= "\x9f" for c in text):
            text = _ESCAPE.sub("", text)
        text = _CONTROL.sub("\ufffd", text.expandtabs(8).replace("\n", " "))
    elif _needs_care(text):
        text = _CONTROL.sub("\ufffd", text)
    if limit is not None and len(text) > limit:
        return text[: max(0, limit - 1)] + "…"
    return text


def without_escapes(text: str) -> str:
    """``text`` without escape sequences; other controls stay."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def safe(text: str, limit: int | None = None) -> str:
    """``text`` as it may be shown and kept: cleaned, then masked, and cut last. A secret with an escape sequence in
    it, or one that is cut in half, would not be seen as one. Nor would one behind a sequence without an end, which
    takes the first letter of the name with it: that is looked for in the text as it was."""
    shown = mask(clean(text))
    if not text.isprintable() and mask(text) != text:
        for value in filter(None, map(_secret_of, _NAMED.finditer(text))):
            shown = shown.replace(value, MASK)
    text = shown
    return text if limit is None or len(text) <= limit else text[: max(0, limit - 1)] + "…"


def quoted(text: str) -> str:
    """``text`` as one word of a command that a person may paste into a shell: foreign text runs nothing there."""
    import shlex  # no command without a next step needs it

    return shlex.quote(clean(text))


def _needs_care(text: str) -> bool:
    return not text.isascii() and _CONTROL.search(text) is not None


def mask(text: str) -> str:
    """``text`` with the values of secrets replaced: named ones (api_key=..., --token X, "password": ...), shaped
    ones (hf_..., sk-..., AKIA..., JWT, PEM keys), Authorization headers and passwords in URLs."""
    for hint in _SHAPE_HINTS:
        if hint in text:
            text = _mask_shapes(text)
            break
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(lambda m: m["head"] + MASK, text)
    # re knows letters outside of ASCII that equal one inside ("ſ"): such text is looked at in full
    low = text.lower() if text.isascii() else ""
    if not low or "bearer" in low or "basic" in low:
        text = _BEARER.sub(lambda m: m["head"] + MASK, text)
        low = text.lower() if low else ""
    for word in _WORDS:
        if not low or word in low:
            return _mask_names(text, low)
    return text


def may_have_secrets(text: str) -> bool:
    """False: ``mask`` leaves the text and each line of it as they are. One look for many lines (a line costs 5 us in
    ``mask`` where it has a count of tokens, as most lines of a serving server have)."""
    if not text.isascii() or any(hint in text for hint in _SHAPE_HINTS) or ("://" in text and "@" in text):
        return True
    low = text.lower()
    if "bearer" in low or "basic" in low:
        return True
    if any(word in low for word in _WORDS if word != "token"):
        return any(not _COUNT.match(text, end.start()) for end in _ENDS["--" in text, True].finditer(low))
    return _NO_COUNT["--" in text].search(low) is not None


class Look(Enum):
    """Of the shape of a line: NONE: whatever its digits were, ``mask`` leaves it. COUNT: so unless a number has ten
    digits. MAYBE: not known."""

    NONE = 0
    COUNT = 1
    MAYBE = 2


def look_at_shape(shape: str) -> Look:
    """Whether a line may have a secret, by the line without its digits 0 to 9: what is deleted makes neighbours, and
    parts none of the words that are looked for."""
    if "\x1b" in shape and look_at_shape(without_escapes(shape)) is Look.MAYBE:
        return Look.MAYBE
    if any(letter in shape for letter in _FOLDED) or any(hint in shape for hint in _SHAPE_HINTS):
        return Look.MAYBE
    low = shape.lower()
    if ("://" in shape and "@" in shape) or "bearer" in low or "basic" in low:
        return Look.MAYBE
    if not any(word in low for word in _WORDS):
        return Look.NONE
    if "--" in shape and _FLAG.search(low):  # a blank may stand between it and its value
        return Look.MAYBE
    ends = list(_ENDS[False, True].finditer(low))
    if not all(_SHAPE_COUNT.match(low, end.start()) for end in ends):
        return Look.MAYBE
    return Look.COUNT if ends else Look.NONE


def is_secret_name(name: str) -> bool:
    """Whether a flag or variable of this name holds a secret (max_total_tokens does not)."""
    bare = name.strip("-'\"").lower().replace("-", "_")
    return bool(_SECRET.fullmatch(bare)) and not _SAFE_NAME.fullmatch(bare)


def masked_argv(argv: Iterable[str], is_secret: Callable[[str], bool] = is_secret_name) -> tuple[str, ...]:
    """A command line as it may be shown: values of secret flags masked, every word through ``clean`` and ``mask``.

    is_secret: whether a flag ("--api-key") holds a secret; a family that knows abbreviations passes its own.
    """
    return tuple(safe(shown) + (MASK if secret else "") for shown, secret in _secrets_of(argv, is_secret))


def secret_values(argv: Iterable[str]) -> tuple[str, ...]:
    """The values that ``masked_argv`` masks by the name of their flag."""
    return tuple(secret for _, secret in _secrets_of(argv, is_secret_name) if secret)


def _secrets_of(argv: Iterable[str], is_secret: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Each word as (what may be shown, the secret that follows it or "")."""
    follows = False
    for word in argv:
        flag, equals, value = word.partition("=")
        named = word.startswith("--") and is_secret(flag)
        if follows and not word.startswith("--"):
            yield "", word
        elif named and equals:
            yield f"{flag}=", value
        else:
            yield word, ""
        follows = named and not equals


def _mask_shapes(text: str) -> str:
    """``_SHAPES.sub``, tried only where a shape can begin: it costs 0.4 us a character."""
    parts: list[str] = []
    done = 0
    for at in sorted(at for hint in _SHAPE_HINTS for at in _places(text, hint)):
        found = _SHAPES.match(text, at) if at >= done else None
        if found is not None:
            parts += (text[done:at], MASK)
            done = found.end()
    return "".join(parts) + text[done:] if parts else text


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _mask_names(text: str, low: str) -> str:
    """``_NAMED.sub``, tried only where a name ends. ``low``: the text in lower case if that has the same places."""
    parts: list[str] = []
    done = 0
    for end in _ENDS["--" in text, bool(low)].finditer(low or text):
        if end.start() < done or _COUNT.match(text, end.start()):
            continue
        for start in _name_starts(text, end.start()):
            found = _NAMED.match(text, start) if start >= done else None
            if found is not None:
                parts += (text[done:start], _mask_named(found))
                done = found.end()
                break
    return "".join(parts) + text[done:] if parts else text


def _name_starts(text: str, at: int) -> Iterator[int]:
    """Where a name with a keyword at ``at`` may begin: flag and quote, quote, or the first letter."""
    while at and _is_name(text[at - 1]):
        at -= 1
    quote = at - 1
    if quote >= 0 and text[quote] in "'\"":
        if text[max(0, quote - 2) : quote] == "--" and (quote == 2 or not _is_name(text[quote - 3])):
            yield quote - 2
        if not quote or not _is_name(text[quote - 1]):
            yield quote
    yield at


def _is_name(char: str) -> bool:
    return char.isalnum() or char in "_.-"


def _secret_of(match: re.Match[str]) -> str:
    """The value, cleaned, where it would be masked; "" for words that stand elsewhere, too."""
    value = clean(match["value"].strip("'\""))
    return value if len(value) >= _LEAST_SECRET and _mask_named(match) != match[0] else ""


def _mask_named(match: re.Match[str]) -> str:
    name = match["name"].strip("-'\"")
    value = match["value"]
    if not is_secret_name(name):  # it may still swallow one: "max_tokens: api_key=x"
        return match["name"] + match["sep"] + _NAMED.sub(_mask_named, value)
    if value.strip("'\"") in ("", "None", "null", "False", "True"):
        return match[0]
    if _COUNTS.search(name) and value.isdigit() and len(value) < 10:
        return match[0]  # "#new-token: 6": a count
    quote = value[0] if value[0] in "'\"" else ""
    return f"{match['name']}{match['sep']}{quote}{MASK}{quote}"
