"""A prefix tree of the ranks' stacks for display, single chains collapsed (as LLNL's STAT draws it)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from sgmon.analyse.stacks.merge import is_boilerplate, of_ranks, python_frames, rank_name
from sgmon.model import Frame, StackDump


class TreeNode(Struct, frozen=True):
    """A chain of frames, outermost first, that these ranks were in (in any sample), and where they went on.

    ended: the ranks whose innermost frame is this chain's last, in any sample.
    """

    frames: tuple[Frame, ...]
    ranks: tuple[str, ...]
    children: tuple[TreeNode, ...] = ()
    ended: tuple[str, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TreeNode]]:
        """This node and all below it with their depths, in display order."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class _Node(Struct):
    frame: Frame | None = None
    ranks: dict[str, None] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    children: dict[tuple[str, str], _Node] = field(default_factory=dict)


def tree(dumps: Sequence[StackDump]) -> TreeNode:
    """All samples of all ranks in one tree. The root has no frames of its own unless all share them.

    Branches with fewer ranks come first: the outlier is what the reader looks for.
    """
    root = _Node()
    for dump in of_ranks(dumps):
        frames = [frame for frame in reversed(python_frames(dump)) if not is_boilerplate(frame)]
        if frames:
            _add(root, frames, rank_name(dump))
    return _collapse(root)


def _add(root: _Node, frames: Sequence[Frame], rank: str) -> None:
    root.ranks[rank] = None
    node = root
    for frame in frames:
        node = node.children.setdefault((frame.function, frame.file), _Node(frame))
        node.frame = frame
        node.ranks[rank] = None
    node.ended[rank] = None


def _collapse(node: _Node) -> TreeNode:
    chain = [node.frame] if node.frame is not None else []
    while len(node.children) == 1 and not node.ended:
        node = next(iter(node.children.values()))
        if node.frame is not None:
            chain.append(node.frame)
    children = sorted(node.children.values(), key=lambda child: (len(child.ranks), list(child.ranks)))
    return TreeNode(
        frames=tuple(chain),
        ranks=tuple(node.ranks),
        children=tuple(_collapse(child) for child in children),
        ended=tuple(node.ended),
    )
