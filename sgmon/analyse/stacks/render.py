"""Stacks as plain lines, for the command line and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sgmon.analyse.stacks.merge import is_boilerplate
from sgmon.analyse.stacks.tree import TreeNode
from sgmon.model import Frame, StackClass, StackDump
from sgmon.units import duration, plural, rank_list

FOLD_OVER = 3  # library frames in a row that are folded to one line
MAJORITY_FRAMES = 4
#: packages whose frames are not the reader's business; what is not known is taken for the server's own code
_LIBRARIES = (
    *("torch/", "torch_memory_saver/", "torchvision/", "triton/", "flashinfer/", "tvm_ffi/", "deep_gemm/", "aiter/"),
    *("transformers/", "huggingface_hub/", "safetensors/", "tokenizers/", "filelock/", "numpy/", "pydantic/"),
    *("zmq/", "uvloop/", "uvicorn/", "starlette/", "fastapi/", "httpx/", "requests/", "urllib3/", "tqdm/"),
    *("multiprocessing/", "concurrent/", "asyncio/", "importlib/", "contextlib.py", "threading.py", "subprocess.py"),
    *("selectors.py", "socket.py", "queue.py", "functools.py", "typing.py", "dataclasses.py", "pathlib.py", "<"),
)


def heading(classes: Sequence[StackClass]) -> str:
    """All classes on one line: "[TP0-2,4-7] | missing TP3"."""
    outliers = [rank for found in classes if found.outlier for rank in found.ranks]
    parts = [f"[{rank_list(found.ranks)}]" for found in classes if not found.outlier and found.frames]
    if outliers:
        parts.append(f"missing {rank_list(tuple(outliers))}")
    unseen = tuple(rank for found in classes if not found.frames and not found.outlier for rank in found.ranks)
    if unseen:
        parts.append(f"no stack of {rank_list(unseen)}")
    return " | ".join(parts)


def class_lines(classes: Sequence[StackClass], *, full: bool = False) -> Iterator[str]:
    """Every class with its stack, innermost on top; the majority shows only its innermost frames."""
    yield heading(classes)
    some_outlier = any(found.outlier for found in classes)
    for found in classes:
        yield ""
        yield class_head(found)
        if not found.frames:
            continue
        shown = list(frame_lines(found.frames, full=full))
        if not full and some_outlier and not found.outlier and len(shown) > MAJORITY_FRAMES + 1:
            shown = [*shown[:MAJORITY_FRAMES], f"  … {plural(len(shown) - MAJORITY_FRAMES, 'more line')} (--full)"]
        yield from shown


def class_head(found: StackClass) -> str:
    """ "TP3 · 1 rank · OUTLIER · waits in ...; unchanged in 3 samples" """
    parts = [rank_list(found.ranks), plural(len(found.ranks), "rank")]
    if found.outlier:
        parts.append("OUTLIER")
    if found.moving:
        parts.append("moving")
    if found.note:
        parts.append(found.note)
    return " · ".join(parts)


def frame_lines(frames: Sequence[Frame], *, full: bool = False) -> Iterator[str]:
    """Frames innermost first; runs of library frames folded, Python's own start left out unless ``full``."""
    if full:
        yield from (f"  {frame_text(frame)}" for frame in frames)
        return
    useful = [frame for frame in frames if not is_boilerplate(frame)] or list(frames)
    run: list[Frame] = []
    for index, frame in enumerate(useful):
        if index and not is_own(frame):
            run.append(frame)
            continue
        yield from _folded(run)
        run = []
        yield f"  {frame_text(frame)}"
    yield from _folded(run)


def is_own(frame: Frame) -> bool:
    """Whether a frame is the server's own, or of no library that is known (the text form cuts off package names)."""
    return not frame.native and bool(frame.file) and not frame.file.startswith(_LIBRARIES)


def frame_text(frame: Frame) -> str:
    """ "load_model (server/model_runner.py:989)" """
    line = f":{frame.line}" if frame.line is not None else ""
    return f"{frame.function} ({frame.file}{line})" if frame.file else frame.function


def tree_lines(root: TreeNode) -> Iterator[str]:
    """The prefix tree, outermost first, a single chain on one line."""
    for depth, node in root.walk():
        if not node.frames:
            continue
        names = [frame.function for frame in node.frames]
        chain = " > ".join(names if len(names) <= 5 else [*names[:2], "…", *names[-2:]])
        ended = f"   <- {rank_list(node.ended)}" if node.ended else ""
        yield f"{'  ' * depth}[{rank_list(node.ranks)}] {chain}{ended}"


def dump_lines(dump: StackDump, *, full: bool = False) -> Iterator[str]:
    """One dump: what was run, how long it took, the main thread, the other threads by name only."""
    took = f" in {duration(dump.took_s)}" if dump.took_s is not None else ""
    yield f"$ {dump.command}{took}" if dump.command else f"pid {dump.pid}{took}"
    if not dump.threads:
        for missing in dump.missing:
            yield f"  no stack: {missing.why}"
            if missing.remedy:
                yield f"  try: {missing.remedy}"
        if not dump.missing:
            yield f"  no stack: {dump.error or 'no reason given'}"
        return
    yield from frame_lines(dump.threads[0].frames, full=full)
    others = [thread.name or f"thread {thread.tid}" for thread in dump.threads[1:]]
    if others:
        yield f"  + {plural(len(others), 'other thread')}: {', '.join(others[:6])}{' …' if len(others) > 6 else ''}"


def _folded(run: Sequence[Frame]) -> Iterator[str]:
    if len(run) <= FOLD_OVER:
        yield from (f"  {frame_text(frame)}" for frame in run)
    else:
        yield f"  {frame_text(run[0])}"
        yield f"  … {len(run) - 2} library frames"
        yield f"  {frame_text(run[-1])}"
