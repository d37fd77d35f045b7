#!/usr/bin/env python3
"""Draws docs/performance.svg from the first table of docs/measurements/2026-11-h200.md.

    python3 tools/performance_chart.py            # writes the chart
    python3 tools/performance_chart.py --check    # fails if the chart is not that of the table

Bars show the time of a tower relative to Fovea's graph: 2 is twice as long. vLLM's eager runs are left out, because
at 64 patches their bar would be ten times as long as any other.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
TABLE = DOCS / "measurements" / "2026-11-h200.md"
CHART = DOCS / "performance.svg"

CASE, BASE = "patches", "Fovea graph"
SERIES = {  # column: title and colour, by Okabe and Ito
    "vLLM graph, own budgets": ("vLLM 0.26, graph", "#E69F00"),
    "PyTorch graph": ("PyTorch, compiled graph", "#009E73"),
    BASE: ("Fovea, graph", "#0072B2"),
}

WIDTH, LEFT, RIGHT, TOP = 760, 96, 64, 64
BAR, GAP = 11, 14


def read_table():
    """The first table as one dictionary per row."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("|"))
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")]
                       for line in lines[first:lines.index("", first)]]
    return [dict(zip(names, row)) for row in rows]


def ratio_of(row, column):
    return float(row[column]) / float(row[BASE])


def text(x, y, content, anchor="start", size=12):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}">{content}</text>'


def bars(rows, scale):
    """One group of bars per case, with the ratio at the end of each."""
    y = TOP
    for row in rows:
        yield text(LEFT - 8, y + 1.5 * BAR + 4, row[CASE], "end")
        for column, (_, colour) in SERIES.items():
            ratio = ratio_of(row, column)
            yield f'<rect x="{LEFT}" y="{y}" width="{ratio * scale:.1f}" height="{BAR - 1}" fill="{colour}"/>'
            label = f"{row[column]} ms" if column == BASE else f"{ratio:.2f}"
            yield text(LEFT + ratio * scale + 4, y + BAR - 2, label, size=10)
            y += BAR
        y += GAP


def legend():
    x = LEFT
    for title, colour in SERIES.values():
        yield f'<rect x="{x}" y="38" width="12" height="12" fill="{colour}"/>'
        yield text(x + 17, 48, title)
        x += 190


def draw(rows):
    scale = (WIDTH - LEFT - RIGHT) / max(ratio_of(row, column) for row in rows for column in SERIES)
    height = TOP + len(rows) * (len(SERIES) * BAR + GAP) + 8
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" fill="#1f2328">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(20, 24, "Time per forward relative to Fovea's graph (shorter is faster), images x patches, H200", size=15),
        *legend(),
        *bars(rows, scale),
        "</svg>",
    ]) + "\n"


def main():
    chart = draw(read_table())
    if "--check" not in sys.argv[1:]:
        CHART.write_text(chart, encoding="utf-8")
    elif CHART.read_text(encoding="utf-8") != chart:
        sys.exit(f"{CHART} is not the chart of {TABLE}; run tools/performance_chart.py")


if __name__ == "__main__":
    main()
