"""What travels: the collector's archive and the Python that it asks for."""

from __future__ import annotations

import ast
import functools
import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.remote import packing

ROOT = Path(__file__).resolve().parents[2]
#: what the standard library gained after 3.8, by name alone: vermin cannot see of which type a value is
TOO_NEW = frozenset(
    {"removeprefix", "removesuffix", "pairwise", "is_relative_to", "with_stem", "bit_count", "randbytes", "cache"}
)
#: modules that may be missing on a far machine, and what then happens
OPTIONAL = {
    "msgspec": "replaced",
    "psutil": "replaced",
    "httpx": "http.client asks",
    "packaging": "numbers alone count",
    "amdsmi": "the GPUs are said to be unread",
    "platformdirs": "no file is written there",
}


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports when it runs, in functions too."""
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                todo.extend(node.orelse)
                continue
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module
                yield from (f"{node.module}.{name.name}" for name in node.names)
            todo.append(node)


def test_all_that_is_imported_there_travels_or_is_known_to_be_missing():
    files = packing.our_files()
    modules = {str(path.relative_to(ROOT).with_suffix("")).replace("/", ".") for path in files}
    modules |= {name.removesuffix(".__init__") for name in modules}
    for path in files:
        for name in imports(path):
            if name.startswith("sgmon."):
                is_module = (ROOT / name.replace(".", "/")).with_suffix(".py").exists()
                assert not is_module or name in modules, f"{path} imports {name}, which does not travel"
            else:
                top = name.partition(".")[0]
                assert top in sys.stdlib_module_names or top in {*packing.LIBRARIES, *OPTIONAL, "sgmon"}, (path, name)


def is_dict(node: ast.AST) -> bool:
    """Whether it is seen at once that it is one: {...}, dict(...), dict.fromkeys(...)."""
    if isinstance(node, ast.Call):
        called = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        return isinstance(called, ast.Name) and called.id == "dict"
    return isinstance(node, (ast.Dict, ast.DictComp))


def test_no_dict_is_joined_with_a_bar():
    """Dicts have no "|" before Python 3.9: no process was found on a machine with 3.8."""
    for path in packing.our_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr):
                assert not is_dict(node.value), f"{path}:{node.lineno}"
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                assert not is_dict(node.left) and not is_dict(node.right), f"{path}:{node.lineno}"


def test_nothing_newer_than_python_3_8_is_called():
    for path in packing.our_files():
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 8))):
            if isinstance(node, ast.Attribute):
                assert node.attr not in TOO_NEW, f"{path}:{node.lineno} uses {node.attr}"


def test_no_generic_type_is_evaluated():
    """An alias such as ``Call = Callable[[int], str]`` needs 3.9: write ``Call: TypeAlias = "Callable[[int], str]"``."""
    for path in packing.our_files():
        if "standin" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        abstract = {
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "collections.abc"
            for name in node.names
        }
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                made = node.value.value
                generic = isinstance(made, ast.Name) and made.id in {
                    *abstract,
                    "tuple",
                    "list",
                    "dict",
                    "set",
                    "type",
                }
                assert not generic, f"{path}:{node.lineno}"


def test_the_archive_is_small_and_holds_what_it_should():
    data = packing.archive()
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert len(data) < 500_000
    assert {"pynvml.py", "yaml/__init__.py", "sgmon/remote/collector.py", "standin/msgspec/__init__.py"} <= set(names)
    assert not [name for name in names if name.startswith(("sgmon/watch", "sgmon/analyse/diagnosis", "tui_app"))]


@functools.cache
def pythons() -> list[str]:
    """The oldest and the newest Python that a collector is made for, where they are installed, and our own."""
    found = {sys.executable: sys.executable}
    for version in ("3.8", "3.13"):
        for path in [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"), shutil.which(f"python{version}")]:
            if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
                found.setdefault(version, str(path))
    return list(found.values())


@pytest.mark.parametrize("python", pythons()[1:2] or pythons())
def test_every_module_is_imported_from_the_archive(python, tmp_path):
    archive = tmp_path / "collector.zip"
    archive.write_bytes(packing.archive())
    names = [name for name in zipfile.ZipFile(archive).namelist() if name.startswith("sgmon/")]
    modules = [name[:-3].replace("/", ".").removesuffix(".__init__") for name in names] + ["pynvml", "yaml"]
    program = (
        f"import sys, importlib; sys.path[:0] = [{str(archive)!r}, {str(archive / 'standin')!r}]\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
    )
    done = subprocess.run([python, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
