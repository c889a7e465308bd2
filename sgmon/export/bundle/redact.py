"""Secrets out of everything that goes into a bundle, and a list of what was masked. Pure.

On top of ``sgmon.text.mask``: values that were seen under a secret's name anywhere (arguments, environment, log) are
replaced wherever else they stand, and paths may be hashed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sgmon.patterns import regex
from sgmon.text import MASK, is_secret_name, mask

#: shorter values are words ("none", "test"), and replacing them would spoil the text
LEARNED_LENGTH = 6
_NAME = (
    r"[\w.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|private[_-]?key|access[_-]?key)[\w-]*"
)
#: also with escaped quotes, as flag and value of a list, in a query string
_PAIR = regex(
    rf"(?P<name>(?:--)?{_NAME})(?P<sep>\\*['\"]?\s*(?:[=:]|,(?=\s*\\*['\"]))\s*\\*['\"]?|(?<=\w)\s+(?=\S))"
    r"(?P<value>[^\s'\"\\,;)}\]&]+)",
    re.IGNORECASE,
)
_MORE = regex(
    r"\bAIza[\w-]{30,}|\bnvapi-[\w-]{16,}|\bnpm_[A-Za-z0-9]{20,}|\bpypi-[\w-]{16,}|\bdop_v1_[0-9a-f]{20,}"
    r"|\bgithub_pat_\w{20,}|\bhf_[A-Za-z0-9]{8,}|\br8_[A-Za-z0-9]{16,}"
)
_USERINFO = regex(r"(?P<head>[a-z][a-z0-9+.-]*://)(?P<who>[^\s/@'\"]+)(?=@[\w\[])", re.IGNORECASE)
_SIGNED = regex(
    r"(?P<head>[?&](?:x-amz-(?:signature|credential|security-token)|signature|sig|awsaccesskeyid|key|code)=)[^&\s'\"]+",
    re.IGNORECASE,
)
_COOKIE = regex(r"(?P<head>\b(?:set-)?cookie['\"]?\s*[:=]\s*['\"]?)[^\r\n'\"]{4,}", re.IGNORECASE)
_CURL = regex(r"(?P<head>\s(?:-u|--user)[ =]['\"]?[^\s:'\"]+:)[^\s'\"]+")
_KEY_BLOCK = regex(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)")
_TOKEN_NAMES = frozenset({"token", "use_auth_token", "auth_token", "access_token", "hf_token", "bearer_token"})
_TOKEN_VALUE = regex(r"(?=[^A-Z\d]*[A-Z\d])[\w.-]{10,}")
#: a line, with the next one where the value may stand there
_LINES = regex(r"[^\n]*(?:[=:][ \t]*\r?\n[^\n]*)?(?:\n|$)")
#: what a line must hold to be looked at more closely (the patterns are slow on long words)
_HINT = regex(
    r"key|token|secret|passw|passphrase|credential|bearer|basic|cookie|://|hf_|sk-|AKIA|ASIA|gh[pousr]_|glpat|xox|eyJ"
    r"|AIza|nvapi-|npm_|pypi-|dop_v1_|github_pat|r8_|[?&]sig|[?&]code=|x-amz|curl| -u |--user",
    re.IGNORECASE,
)
_NOTHING = frozenset({"none", "null", "false", "true", "", MASK.lower()})
_BEFORE_MASK = regex(r"([\w.-]+)\\*['\"]?\s*[=:,]?\s*\\*['\"]?(?:bearer |basic )?\*{8}", re.IGNORECASE)
_PATH = regex(r"(?<![\w:/.])/(?:[\w.@+~-]+/)*[\w.@+~-]+")
#: places that are the same everywhere
_PUBLIC = regex(r"^/(?:proc|sys|dev|usr|lib|lib64|bin|etc|run|health|v1|get_\w+|metrics|generate)(?:/|$)")
_KEPT_TAIL = regex(r"/(?:site-packages|dist-packages|python3\.\d+)/.*$")


class Redactor:
    """Masks texts and readings. ``found``: what was masked, (where, name) -> how often."""

    def __init__(self, *, hash_paths: bool = False, salt: str = "") -> None:
        self.found: Counter[tuple[str, str]] = Counter()
        self.hash_paths = hash_paths
        self._salt = salt
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._names: set[str] = set()
        self._private: re.Pattern[str] | None = None
        self._seen: dict[str, tuple[str, Counter[str]]] = {}

    def learn(self, values: Iterable[str]) -> None:
        """Values that are secrets, wherever they stand."""
        fresh = {value for value in values if len(value) >= LEARNED_LENGTH and value.lower() not in _NOTHING}
        if fresh - self._known:
            self._known |= fresh
            longest = sorted(self._known, key=len, reverse=True)
            self._pattern = re.compile("|".join(re.escape(value) for value in longest))
            self._seen = {}

    def learn_from(self, text: str) -> None:
        """Values that stand under a secret's name in this text."""
        self.learn(
            match["value"]
            for match in _PAIR.finditer(text)
            if _is_secret(match["name"], match["value"])
            and not match["sep"].isspace()
            and not match["value"].isdigit()
        )

    def hide_names(self, paths: Iterable[str]) -> None:
        """Relative paths and names that hashing must also reach: a model's, a user's."""
        self._names |= {path for path in paths if len(path) >= 3}
        longest = sorted(self._names, key=len, reverse=True)
        self._private = re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(name) for name in longest)})(?!\w)")
        self._seen = {}

    def text(self, text: str, where: str) -> str:
        """One text, masked; counts what was."""
        if len(text) > 400:
            masked, names = self._mask(text)
        else:
            if text not in self._seen:
                self._seen[text] = self._mask(text)
            masked, names = self._seen[text]
        for name, count in names.items():
            self.found[where, name] += count
        return masked

    def value(self, value: Any, where: str) -> Any:
        """A reading, or any part of one: the same shape with every text masked."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, tuple):
            return self._tuple(value, where)
        if isinstance(value, Struct):
            changed = {}
            for name in value.__struct_fields__:
                old = getattr(value, name)
                if isinstance(old, (str, tuple, Struct)):
                    new = self.value(old, where)
                    if new != old:
                        changed[name] = new
            return replace(value, **changed) if changed else value
        return value

    def words(self) -> list[str]:
        """What was masked, a line a place: "log: api_key (3), Authorization"."""
        places: dict[str, list[str]] = {}
        for (where, name), count in sorted(self.found.items()):
            places.setdefault(where, []).append(name if count == 1 else f"{name} ({count})")
        return [f"{where}: {', '.join(names)}" for where, names in places.items()]

    def _tuple(self, value: tuple[Any, ...], where: str) -> tuple[Any, ...]:
        """Also an argv, and (name, value) pairs, where the name is not in the same text."""
        out: list[Any] = []
        secret = False
        for item in value:
            if secret and isinstance(item, str) and not item.startswith("-") and item.lower() not in _NOTHING:
                self.found[where, str(out[-1]).lstrip("-")] += 1
                out.append(MASK)
            else:
                out.append(self.value(item, where))
            secret = isinstance(item, str) and is_secret_name(item.lstrip("-").replace("-", "_"))
        return tuple(out)

    def _mask(self, text: str) -> tuple[str, Counter[str]]:
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        if "PRIVATE" in text:
            text = _KEY_BLOCK.sub(lambda m: MASK + "\n" * m[0].count("\n"), text)  # line numbers stay
        text = "".join(_mask_line(part) if _HINT.search(part) else part for part in _LINES.findall(text))
        names: Counter[str] = Counter()
        if MASK in text:
            named = [match[1] for match in _BEFORE_MASK.finditer(text)]
            names.update(name.lstrip("-") for name in named)
            rest = text.count(MASK) - len(named)
            if rest > 0:
                names["a value"] += rest
        if self.hash_paths:
            text = _PATH.sub(lambda m: self._hashed(m[0]), text)
            if self._private is not None:
                text = self._private.sub(lambda m: self._part(m[0]), text)
        return text, names

    def _hashed(self, path: str) -> str:
        if _PUBLIC.match(path):
            return path
        tail = _KEPT_TAIL.search(path)
        head = path[: tail.start()] if tail else path
        return "/".join(self._part(part) if part else "" for part in head.split("/")) + (tail[0] if tail else "")

    def _part(self, part: str) -> str:
        stem, dot, end = part.rpartition(".")
        kept = f".{end}" if dot and stem and end.isalnum() and len(end) <= 11 and not end.isdigit() else ""
        return "p" + hashlib.sha256((self._salt + part).encode("utf-8", "surrogatepass")).hexdigest()[:8] + kept


def _mask_line(text: str) -> str:
    text = mask(text)
    text = _MORE.sub(MASK, text)
    text = _PAIR.sub(_mask_pair, text)
    if "://" in text:
        text = _USERINFO.sub(lambda m: m["head"] + _who(m["who"]), text)
    text = _SIGNED.sub(lambda m: m["head"] + MASK, text)
    text = _COOKIE.sub(lambda m: m["head"] + MASK, text)
    return _CURL.sub(lambda m: m["head"] + MASK, text)


def _is_secret(name: str, value: str) -> bool:
    """By its name; a bare "token" counts when its value looks like one."""
    if is_secret_name(name):
        return True
    bare = name.strip("-'\"").lower()
    return bare in _TOKEN_NAMES and bool(_TOKEN_VALUE.fullmatch(value))


def _mask_pair(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    flag = name.startswith("--")
    if not _is_secret(name, value) or value.lower() in _NOTHING or value.startswith(MASK):
        return match[0]
    if match["sep"].isspace() and not flag:
        return match[0]  # prose: "token ids"
    if value.lower() in ("bearer", "basic") or (value.isdigit() and len(value) < 10):
        return match[0]
    return f"{name}{match['sep']}{MASK}"


def _who(userinfo: str) -> str:
    """ "user:********": who logs in is no secret, unless it is a token alone."""
    user, colon, _ = userinfo.partition(":")
    return f"{user}:{MASK}" if colon else MASK
