"""Where the model, its tokenizer and its draft lie: a folder here, the hub's cache, or nowhere."""

from __future__ import annotations

import os

import msgspec
from msgspec.structs import replace

from sgmon.collect.preflight import folder
from sgmon.collect.probes.model_files import model_folders
from sgmon.discovery.inner import Inside
from sgmon.model import Server
from sgmon.model.preflight import ModelFolder, Place
from sgmon.paths import own_program
from sgmon.proc import child, mounts

#: a folder on a mount of another machine must answer within this
REMOTE_S = 15.0


def look(inside: Inside, server: Server, path: str) -> ModelFolder | None:
    """What ``path`` (as an argument gives it) turns out to be; None without one."""
    if not path:
        return None
    if "://" in path:
        return ModelFolder(path, place=Place.URL)
    asked = replace(server, args=replace(server.args, model_path=path))
    found = [_at(inside, one, path) for one in model_folders(inside, asked)]
    for at, one in enumerate(found):
        if one.place is not Place.ABSENT:
            return replace(one, from_cache=at > 0)
    absolute = path.startswith(("/", "./", "../", "~")) or path.count("/") > 1 or path.endswith("/")
    return ModelFolder(path, place=Place.ABSENT if absolute else Place.HUB)


def template(inside: Inside, path: str) -> Place | None:
    """Whether the file of a chat template is there; None: no file is named (a built-in one, or the text)."""
    if not path or "\n" in path or "{" in path or not ("/" in path or path.endswith((".jinja", ".json"))):
        return None
    if inside.remote(path):
        return Place.FILE if inside.has(path) else Place.HIDDEN  # a mount that did not answer looks the same
    here = inside.reach(path)
    try:
        os.stat(here)
    except FileNotFoundError:
        return Place.ABSENT
    except OSError:
        return Place.HIDDEN
    return Place.FILE


def _at(inside: Inside, path: str, asked: str) -> ModelFolder:
    """One folder, at its path as the server sees it."""
    inner = os.path.normpath(path)
    mount = mounts.of_path(inside.rows, inner)
    here = inside.reach(inner)
    found = (
        _by_child(here, asked) if inside.remote(inner) else folder.read(here, asked, elsewhere=bool(inside.prefix))
    )
    return replace(found, path=inner, fstype=mount.fstype if mount is not None else "")


def _by_child(here: str, asked: str) -> ModelFolder:
    """The same by a child process, which can be left behind where the mount hangs."""
    program = own_program("from sgmon.collect.preflight.folder import main; main()")
    printed = child.output([*program, here, asked], REMOTE_S)
    try:
        return msgspec.json.decode(printed or b"", type=ModelFolder)
    except msgspec.MsgspecError:
        return ModelFolder(asked, here, Place.HUNG)
