"""``sgmon log FILE``: read a start log after the fact, from a file, a compressed one or stdin."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain

import msgspec

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.log.hard_wrapped import unwrapped, width_of
from sgmon.analyse.log.newest_first import is_newest_first, oldest_first, renumbered
from sgmon.analyse.log.summary import as_json, exit_code, headline, text
from sgmon.commands import USAGE
from sgmon.commands.output import print_json
from sgmon.compressed import ENDINGS, HEAD_BYTES, DamagedError, NoUnpackerError, Unpacked, kind_of
from sgmon.history.compare import StartDiff, as_lines, compare
from sgmon.history.finished_start import FinishedStart
from sgmon.history.from_snapshot import start_of_log
from sgmon.model.log import LogReading, LogState

HELP = "read a log after the fact"
CHUNK = 1 << 20
#: A text with more than this share of NULs and control bytes in its first chunk is no log.
_BINARY_SHARE = 0.10


class UnreadableError(Exception):
    """The file cannot be read as a log: one sentence, and what to try."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help='the log; "-" reads stdin; gz, xz, bz2 and zst are unpacked')
    parser.add_argument("--json", action="store_true", help="one JSON object (schema 1)")
    parser.add_argument("--against", metavar="FILE", help="compare with the log of a good start")


def run(args: argparse.Namespace) -> int:
    """0 ready, 4 unfinished, 5 crashed; 2 if the file cannot be read."""
    try:
        state = read(args.file)
        known = read(args.against) if args.against else None
    except UnreadableError as err:
        print(f"sgmon log: {err}", file=sys.stderr)
        return USAGE
    if args.json:
        print_json(_object(state, args.file, known, args.against))
    elif known is not None:
        print(headline(state))
        print("\n".join(as_lines(*_diff(state, known, args.file, args.against), args.file, args.against)))
    else:
        print(text(state, args.file))
    return exit_code(state)


def read(path: str) -> LogState:
    """Fold a whole file. Raises ``UnreadableError`` with words for people."""
    fold = LogFold(epoch=_written(path))
    chunks = _chunks(path)
    first = next(chunks, "")
    numbers: list[int] = []
    physical = 0  # lines of a text whose lines are cut
    if is_newest_first(first):
        whole, numbers = oldest_first(first + "".join(chunks))
        chunks = iter((whole,))
    elif width := width_of(first):
        cut = first + "".join(chunks)
        physical = len(cut.splitlines())
        whole, numbers = unwrapped(cut, width)
        chunks = iter((whole,))
    else:
        chunks = chain((first,), chunks)
    for chunk in chunks:
        fold.feed(LogReading(path=path, text=chunk), 0.0)
    state = renumbered(fold.state(), numbers) if numbers else fold.state()
    return msgspec.structs.replace(state, lines=physical) if physical else state


def _written(path: str) -> float:
    """When the log was written last, which tells the year of dates without one; now where it is no file."""
    try:
        mode = os.stat(path)
        return mode.st_mtime if stat.S_ISREG(mode.st_mode) else time.time()
    except OSError:
        return time.time()


def _object(state: LogState, path: str, known: LogState | None, against: str) -> dict[str, object]:
    found = as_json(state, path)
    if known is not None:
        diff, here, there = _diff(state, known, path, against)
        found["against"] = {"file": against, "lines": [here.lines, there.lines], **msgspec.to_builtins(diff)}
    return found


def _diff(
    state: LogState, known: LogState, path: str, against: str
) -> tuple[StartDiff, FinishedStart, FinishedStart]:
    here, there = start_of_log(state, path), start_of_log(known, against)
    return compare(here, there), here, there


def _chunks(path: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    first = True
    try:
        with closing(_open(path)) as stream:
            while data := stream.read1(CHUNK):
                if first:
                    _refuse_binary(path, data)
                    first = False
                yield decoder.decode(data)
    except DamagedError as err:
        if first:
            raise UnreadableError(f'"{path}" is damaged, nothing of it can be unpacked ({err}).') from err
        print(f"sgmon log: {path} is cut or damaged ({err}); what is readable was read.", file=sys.stderr)
    except OSError as err:
        raise UnreadableError(f'cannot read "{path}": {err.strerror or err}. {_remedy(err)}') from err
    yield decoder.decode(b"", True)


def _open(path: str) -> io.BufferedReader | Unpacked:
    stream = _stream(path)
    kind = _kind(stream)
    try:
        return Unpacked(stream, kind) if kind else stream
    except NoUnpackerError as err:
        raise UnreadableError(f'"{path}": {err}') from None


def _kind(stream: io.BufferedReader) -> str:
    return kind_of(stream.peek(HEAD_BYTES)[:HEAD_BYTES])


def _stream(path: str) -> io.BufferedReader:
    if path == "-":
        if sys.stdin.isatty():
            raise UnreadableError('"-" reads stdin, but stdin is this terminal. Try: sgmon log - < server.log')
        return io.BufferedReader(io.FileIO(os.dup(sys.stdin.fileno())))
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableError(f'"{path}" is a directory. Give the log file in it.')
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise UnreadableError(f'"{path}" is no regular file. Give a log file, or pipe the log in: sgmon log -')
    stream = open(path, "rb")
    ending = os.path.splitext(path)[1]
    expected = ENDINGS.get(ending, "")
    if stat.S_ISREG(mode) and expected and _kind(stream) != expected:
        stream.close()
        raise UnreadableError(f'"{path}" ends in {ending} but is no {expected} file. Rename or unpack it.')
    return stream


def _refuse_binary(path: str, data: bytes) -> None:
    head = data[:65_536].lstrip(b"\0")
    odd = sum(head.count(byte) for byte in (*range(1, 9), *range(14, 27), *range(28, 32), 127)) + head.count(0)
    if head.startswith((b"\x1f\x8b", b"\x7fELF", b"\x89PNG", b"PK\x03\x04")) or odd > _BINARY_SHARE * len(head) > 0:
        raise UnreadableError(f'"{path}" is binary, not a log. Give the text that the server printed.')


def _remedy(err: OSError) -> str:
    if isinstance(err, FileNotFoundError):
        return "Check the path, or let sgmon find the log of a running server: sgmon status"
    if isinstance(err, PermissionError):
        return "Read it as its owner, or: sudo cat FILE | sgmon log -"
    return "Copy the file elsewhere and try again."
