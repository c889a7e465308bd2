"""Print a table of the lines of code per package, as Markdown, or fill in the one of docs/architecture.md.

    python -m tools.count_lines [ROOT ...]
    python -m tools.count_lines --write

Lines of code are those with a token that is neither a comment nor a docstring; blank lines do not count. ROOT is a
checkout; several make several columns, matched by the name of the package. --write replaces the last column of the
table in docs/architecture.md by the numbers of this checkout and keeps the others.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

DOCUMENT = Path("docs/architecture.md")
MARK, MARK_END = "<!-- lines of code -->", "<!-- end -->"
_PRODUCT = ("sgmon", "widgets", "tui_app")
_TOP = (*_PRODUCT, "tests", "benchmarks", "tools")
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def lines_of_code(source: str) -> int:
    """Lines with code. Raises SyntaxError."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docs.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docs)


def packages(root: Path) -> Counter[str]:
    """Package ("sgmon/analyse/log") -> lines of code; modules at the top of sgmon count as "sgmon"."""
    found: Counter[str] = Counter()
    for top in _TOP:
        for path in (root / top).rglob("*.py"):
            inside = path.relative_to(root).parent.parts
            name = "/".join(inside[:2]) if top == "sgmon" else top
            found[name] += lines_of_code(path.read_text(encoding="utf-8"))
    return found


def table(columns: dict[str, Counter[str]]) -> list[str]:
    """Rows by package, then the sums of the product (without tests, benchmarks and tools) and of all."""
    names = sorted({name for column in columns.values() for name in column})
    rows = ["| package |" + "".join(f" {title} |" for title in columns), "|---|" + "---|" * len(columns)]
    rows += [f"| {name} |" + "".join(f" {column[name] or '-'} |" for column in columns.values()) for name in names]
    product = [sum(n for name, n in column.items() if name.split("/")[0] in _PRODUCT) for column in columns.values()]
    rows.append("| **product** |" + "".join(f" **{count}** |" for count in product))
    rows.append("| **all** |" + "".join(f" **{sum(column.values())}** |" for column in columns.values()))
    return rows


def with_counts(text: str, counts: Counter[str]) -> str:
    """The document with its table brought up to date: the column "before" as it is, "after" from ``counts``."""
    head, begin, rest = text.partition(f"{MARK}\n")
    old, end, tail = rest.partition(f"{MARK_END}\n")
    if not begin or not end:
        raise ValueError(f"no table between {MARK} and {MARK_END}")
    before: Counter[str] = Counter()
    for line in old.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) > 1 and cells[1].isdigit():
            before[cells[0]] = int(cells[1])
    return head + begin + "\n".join(table({"before": before, "after": counts})) + "\n" + end + tail


def main(words: list[str]) -> None:
    if words == ["--write"]:
        DOCUMENT.write_text(with_counts(DOCUMENT.read_text(encoding="utf-8"), packages(Path())), encoding="utf-8")
        return
    roots = [Path(word) for word in words] or [Path()]
    print("\n".join(table({str(root): packages(root) for root in roots})))


if __name__ == "__main__":
    main(sys.argv[1:])
