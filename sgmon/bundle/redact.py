"""Secrets out of everything that goes into a bundle, and a list of what was masked. Pure.

On top of ``sgmon.text.mask``: values that were seen under a secret's name anywhere (arguments, environment, log) are
replaced wherever else they stand, and paths may be hashed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sgmon.text import MASK, is_secret_name, mask

#: shorter values are words ("none", "test"), and replacing them would spoil the text
LEARNED_LENGTH = 6
_NAME = (
    r"[\w.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|private[_-]?key|access[_-]?key)[\w-]*"
)
#: also with escaped quotes, as flag and value of a list, in a query string
_PAIR = re.compile(
    rf"(?P<name>(?:--)?{_NAME})(?P<sep>\\*['\"]?\s*(?:[=:]|,(?=\s*\\*['\"]))\s*\\*['\"]?|(?<=\w)\s+(?=\S))"
    r"(?P<value>[^\s'\"\\,;)}\]&]+)",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\bAIza[\w-]{30,}|\bnvapi-[\w-]{16,}|\bnpm_[A-Za-z0-9]{20,}|\bpypi-[\w-]{16,}|\bdop_v1_[0-9a-f]{20,}"
    r"|\bgithub_pat_\w{20,}|\bhf_[A-Za-z0-9]{8,}|\br8_[A-Za-z0-9]{16,}"
)
_USERINFO = re.compile(r"(?P<head>[a-z][a-z0-9+.-]*://)(?P<who>[^\s/@'\"]+)(?=@[\w\[])", re.IGNORECASE)
_SIGNED = re.compile(
    r"(?P<head>[?&](?:x-amz-(?:signature|credential|security-token)|signature|sig|awsaccesskeyid|key|code)=)[^&\s'\"]+",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"(?P<head>\b(?:set-)?cookie['\"]?\s*[:=]\s*['\"]?)[^\r\n'\"]{4,}", re.IGNORECASE)
_CURL = re.compile(r"(?P<head>\s(?:-u|--user)[ =]['\"]?[^\s:'\"]+:)[^\s'\"]+")
_NOTHING = frozenset({"none", "null", "false", "true", "", MASK.lower()})
_BEFORE_MASK = re.compile(r"([\w.-]+)\\*['\"]?\s*[=:,]?\s*\\*['\"]?(?:bearer |basic )?\*{8}", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w:/.])/(?:[\w.@+~-]+/)*[\w.@+~-]+")
#: places that are the same everywhere
_PUBLIC = re.compile(r"^/(?:proc|sys|dev|usr|lib|lib64|bin|etc|run|health|v1|get_\w+|metrics|generate)(?:/|$)")
_KEPT_TAIL = re.compile(r"/(?:site-packages|dist-packages|python3\.\d+)/.*$")


class Redactor:
    """Masks texts and readings. ``found``: what was masked, (where, name) -> how often."""

    def __init__(self, *, hash_paths: bool = False, salt: str = "") -> None:
        self.found: Counter[tuple[str, str]] = Counter()
        self.hash_paths = hash_paths
        self._salt = salt
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._names: set[str] = set()
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
            if is_secret_name(match["name"]) and not match["sep"].isspace() and not match["value"].isdigit()
        )

    def hide_names(self, paths: Iterable[str]) -> None:
        """Relative paths and names that hashing must also reach (a model's)."""
        self._names |= {path for path in paths if len(path) > 3}
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
        if is_dataclass(value) and not isinstance(value, type):
            changed = {}
            for field in fields(value):
                old = getattr(value, field.name)
                if isinstance(old, (str, tuple)) or is_dataclass(old):
                    new = self.value(old, where)
                    if new != old:
                        changed[field.name] = new
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
        text = mask(text)
        text = _MORE.sub(MASK, text)
        text = _PAIR.sub(_mask_pair, text)
        if "://" in text:
            text = _USERINFO.sub(lambda m: m["head"] + _who(m["who"]), text)
        text = _SIGNED.sub(lambda m: m["head"] + MASK, text)
        text = _COOKIE.sub(lambda m: m["head"] + MASK, text)
        text = _CURL.sub(lambda m: m["head"] + MASK, text)
        names: Counter[str] = Counter()
        if MASK in text:
            named = [match[1] for match in _BEFORE_MASK.finditer(text)]
            names.update(name.lstrip("-") for name in named)
            rest = text.count(MASK) - len(named)
            if rest > 0:
                names["a value"] += rest
        if self.hash_paths:
            text = _PATH.sub(lambda m: self._hashed(m[0]), text)
            for name in self._names:
                text = text.replace(name, self._part(name))
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
        return "p" + hashlib.sha256((self._salt + part).encode()).hexdigest()[:8] + kept


def _mask_pair(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    flag = name.startswith("--")
    if not is_secret_name(name) or value.lower() in _NOTHING or value.startswith(MASK):
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
