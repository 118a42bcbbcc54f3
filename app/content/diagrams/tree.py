"""The two binary trees of a tree all-reduce; where ranks are even in number, a rank has one column in both."""

from __future__ import annotations

from app.content.diagrams.schema import DoubleTree
from app.content.diagrams.svg import NARROW, Canvas, Picture
from app.theory.collectives import Tree, simulate_tree_all_reduce, two_trees
from app.units import digits

_LEVEL, _RADIUS, _HEAD, _BETWEEN = 36.0, 10.0, 30.0, 20.0


def draw_tree(record: DoubleTree) -> Picture:
    """Each tree carries half of the tensor up to its root and down again; ranks that forward are filled."""
    canvas = Canvas()
    trees = two_trees(record.ranks)
    y = 0.0
    for name, tree in zip(("First half of the tensor", "Second half"), trees, strict=True):
        canvas.label(0, y + 12, name, "d-strong")
        _draw(canvas, tree, y + _HEAD)
        y += _HEAD + max(tree.depth) * _LEVEL + 2 * _RADIUS + _BETWEEN
    sent = simulate_tree_all_reduce(1.0, record.ranks, 1.0).sent_bytes
    parents = [_parents(tree) for tree in trees]
    hops = max(trees[0].depth)
    return canvas.picture(
        y - _BETWEEN + 4,
        f"Either half passes {hops} hops up to its root and as many down; no rank sends more than "
        f"{digits(max(sent), 3)} times the tensor.",
        ("Rank", "Sends the first half up to", "and the second to", "Sends in all, × S"),
        ((str(rank), parents[0][rank], parents[1][rank], digits(sent[rank], 3)) for rank in range(record.ranks)),
        (("d-inner", "sums what its children send"), ("d-node", "leaf: only sends and receives")),
    )


def _draw(canvas: Canvas, tree: Tree, top: float) -> None:
    apart = (NARROW - 2 * _RADIUS - 4) / (len(tree.parent) - 1)
    # mirrored ranks keep their columns; ranks shifted by one would wrap around, so their tree keeps its shape instead
    columns = tree.rank_at if len(tree.rank_at) % 2 == 0 else range(len(tree.rank_at))
    at = [
        (_RADIUS + 2 + column * apart, top + depth * _LEVEL) for column, depth in zip(columns, tree.depth, strict=True)
    ]
    for place, parent in enumerate(tree.parent[1:], start=1):
        canvas.line([at[place], at[parent]])
    for place, (x, y) in enumerate(at):
        inner = bool(tree.children[place])
        canvas.circle(x, y, _RADIUS, "d-inner" if inner else "d-node")
        canvas.label(x, y + 4, str(tree.rank_at[place]), "d-on-inner" if inner else "d-ink", "middle")


def _parents(tree: Tree) -> dict[int, str]:
    return {
        rank: "nobody: root" if place == 0 else f"rank {tree.rank_at[tree.parent[place]]}"
        for place, rank in enumerate(tree.rank_at)
    }
