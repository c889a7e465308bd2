"""Licences of everything that sgmon brings along: python -m tools.licences. Exit 1 if one is unknown or not wanted.

From the packages' own metadata (PEP 639's License-Expression, classifiers, License), for what is installed here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sgmon.tables import parse_document

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

#: extras that a user may install; "sglang" is the server itself, "amd" needs ROCm
EXTRAS = ("prometheus", "otlp", "serve")
_COPYLEFT = re.compile(r"(?<![A-Z])A?GPL|GNU (?:Affero )?General Public", re.IGNORECASE)


class Licence(NamedTuple):
    """One package as installed. words: "" where its metadata says nothing."""

    name: str
    version: str
    words: str

    @property
    def trouble(self) -> str:
        """Why it may not be brought along; "" if it may."""
        if not self.words:
            return "no licence is named"
        free = re.sub(r"LGPL|Lesser General Public", "", self.words)  # a library's: may be used by any program
        return "copyleft" if _COPYLEFT.search(free) else ""


def brought(project: Path = PROJECT, extras: tuple[str, ...] = EXTRAS) -> Iterator[Licence]:
    """Every package that the project needs, and what those need, by name. What is not installed is left out."""
    table: Any = parse_document(project.read_text(encoding="utf-8"), str(project))["project"]
    waiting = [Requirement(text) for text in table["dependencies"]]
    waiting += [Requirement(text) for extra in extras for text in table["optional-dependencies"][extra]]
    found: dict[str, Licence] = {}
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        fresh = name not in found
        found[name] = licence_of(package)
        marks = [{"extra": extra} for extra in need.extras] + ([{"extra": ""}] if fresh else [])
        for one in map(Requirement, package.requires or ()):
            if any(one.marker is None or one.marker.evaluate(mark) for mark in marks) and (
                one.extras or canonicalize_name(one.name) not in found
            ):
                waiting.append(one)
    yield from (found[name] for name in sorted(found))


def licence_of(found: Distribution) -> Licence:
    """By what its metadata says first: expression, classifiers, the first line of "License"."""
    name = canonicalize_name(found.metadata["Name"])
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in found.metadata.get_all("Classifier") or ()
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    said = (found.metadata.get("License") or "").strip().splitlines()
    words = found.metadata.get("License-Expression") or " or ".join(classifiers) or (said[0] if said else "")
    return Licence(name, found.version, words)


def main() -> int:
    bad = 0
    for one in brought():
        bad += bool(one.trouble)
        print(f"{one.name:42} {one.version:14} {one.words or '?'}{f'   <- {one.trouble}' if one.trouble else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
