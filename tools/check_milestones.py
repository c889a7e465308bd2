"""Which rules of a family's catalogue a server can print: every template is looked up, as text, in its source.

``python -m tools.check_milestones FAMILY [PATH]``: PATH is a source tree of the server, an installed package, or the
site-packages that hold one. A newer version that renamed a line so gives fewer claims, not wrong ones.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sgmon.analyse.log.catalogue import Catalogue, Rule, of_family, version_key
from sgmon.servers import registry

#: Larger files are generated tables.
MAX_BYTES = 4_000_000
_SKIPPED = {"multimodal_gen", "test", "tests", "__pycache__", "jit_kernel", "benchmark", "node_modules"}
_VERSION = re.compile(r"__version__\s*(?::\s*\w+\s*)?=\s*(?:version\s*=\s*)?['\"]([\d.]+[\w.+]*)['\"]")


@dataclass(frozen=True, slots=True)
class RuleFound:
    """One rule, and whether this source can print its line. expected: the catalogue says that this version does."""

    group: str
    name: str
    example: str
    found: bool
    expected: bool
    template: str


@dataclass(frozen=True, slots=True)
class Check:
    """The result. found and total count the rules that this version should have."""

    path: str
    version: str
    rules: tuple[RuleFound, ...]
    files: int
    error: str = ""

    @property
    def total(self) -> int:
        return sum(rule.expected for rule in self.rules)

    @property
    def found(self) -> int:
        return sum(rule.expected and rule.found for rule in self.rules)

    @property
    def silent(self) -> frozenset[str]:
        """Milestones of which no rule is in this source: their absence in a log says nothing."""
        there = {rule.name for rule in self.rules if rule.found}
        return frozenset(rule.name for rule in self.rules if rule.group == "milestone") - there

    def summary(self) -> str:
        """ "rules found in this version: 41/44"."""
        return self.error or f"rules found in this version: {self.found}/{self.total}"


def check(family: str, path: str | Path) -> Check:
    """Look every template of the family's catalogue up below ``path``."""
    known = registry.get(family)
    root = package_root(Path(path), known.package)
    if root is None:
        return Check(str(path), "", (), 0, f'no {known.label} source below "{path}" (looked for {known.package}/)')
    version, catalogue = version_of(root), of_family(family)
    mine = tuple(rule for rule in catalogue.rules if rule.template)
    wanted = {template for rule in mine for template in rule.template}
    seen: set[str] = set()
    files = 0
    for text in _sources(root):
        files += 1
        seen |= {template for template in wanted - seen if template in text}
        if len(seen) == len(wanted):
            break
    return Check(str(root), version, tuple(_result(rule, seen, version, catalogue) for rule in mine), files)


def package_root(path: Path, package: str) -> Path | None:
    """The package at or below ``path``: in its python folder (a source tree), in it (site-packages), or itself."""
    for candidate in (path / "python" / package, path / package, path):
        if candidate.name == package and candidate.is_dir():
            return candidate
    return None


def version_of(root: Path) -> str:
    """The version of the package at ``root``; "" if it is not written there."""
    for name in ("_version.py", "version.py"):
        match = _VERSION.search(_text(root / name))
        if match:
            return match[1]
    for info in sorted(root.parent.glob(f"{root.name}-*.dist-info")):
        return info.name.removeprefix(f"{root.name}-").removesuffix(".dist-info")
    return ""


def _result(rule: Rule, seen: set[str], version: str, catalogue: Catalogue) -> RuleFound:
    there = next((template for template in rule.template if template in seen), "")
    return RuleFound(rule.group, rule.name, rule.example, bool(there), _expected(rule, version, catalogue), there)


def _expected(rule: Rule, version: str, catalogue: Catalogue) -> bool:
    """Whether the catalogue says that this version prints it. Newer versions than the newest known: as the newest."""
    key, first, last = version_key(version), version_key(rule.first), version_key(rule.last)
    if first is None or last is None:
        return False  # a line of another program
    if key is None:
        return last == catalogue.newest
    return first <= key and (key <= last or last == catalogue.newest)


def _sources(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            if name.endswith(".py"):
                yield _text(Path(folder) / name)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            return ""
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def main(argv: list[str] | None = None) -> int:
    """0: every rule that this version should have is there; 3: some are not; 2: no such server there."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_milestones", description=__doc__)
    parser.add_argument("family", choices=[family.name for family in registry.families()])
    parser.add_argument("path", nargs="?", default=sysconfig.get_paths()["purelib"])
    args = parser.parse_args(argv)
    result, family = check(args.family, args.path), registry.get(args.family)
    if result.error:
        print(
            f"tools.check_milestones: {result.error}. Give the folder that holds {family.package}/.", file=sys.stderr
        )
        return 2
    for rule in result.rules:
        mark = "found" if rule.found else ("MISSING" if rule.expected else "not in this version")
        print(f"{mark:<20} {rule.group:<10} {rule.name:<24} {rule.template or rule.example[:70]}")
    version = result.version or "(version unknown)"
    print(f"{family.label} {version} at {result.path}: {result.summary()}, {result.files} files")
    return 0 if result.found == result.total else 3


if __name__ == "__main__":
    sys.exit(main())
