#!/usr/bin/env python3
"""Draws a chart of what the program has measured, as SVG that needs no fonts, scripts or other files.

    fovea bench latency MODEL --output-json latency.json
    python3 tools/chart.py latency.json latency.svg

The JSON is that of --output-json of `fovea bench latency`, `throughput`, `serve`, `cache` and `mm-processor`, or of
`fovea encode --stats`; each has a chart of its own.
"""

import argparse
import json
import math
from pathlib import Path
from xml.sax.saxutils import escape

# Okabe and Ito's palette, less its black and its yellow, which vanishes on white.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"]
INK, GRID = "#1f2328", "#d8dee4"
CHARACTER = 7.2  # pixels, estimated: a writer has no fonts
MARGIN, LEGEND_TOP = 20, 52
STAGES = ["read", "decode", "resize", "pack", "encode", "output"]


# --- what is drawn: bars of parts, or lines of points ---


def stage_name(key):
    return key.removesuffix("_ms").replace("_", " ")


def items_chart(result):
    """A bar per item of `fovea encode --stats`."""
    items = result["slowest_items"]
    few = len(items) == result["items"] - result["failed_items"]
    return {"title": "Time per item" if few else f"Time per item, the slowest {len(items)}", "unit": "milliseconds",
            "bars": [item["name"] if len(item["name"]) <= 32 else "..." + item["name"][-29:] for item in items],
            "parts": {stage: [item[stage + "_ms"] for item in items] for stage in STAGES}}


def throughput_chart(result):
    statistics = ["mean", "median", "p99"]
    return {"title": "Time per item and stage", "unit": "milliseconds", "bars": statistics,
            "parts": {stage_name(key): [stage[name] for name in statistics] for key, stage in result["stages"].items()}}


def requests_chart(result):
    """A bar per mode and statistic of `fovea bench mm-processor`."""
    runs = [result["eager"], result] if "eager" in result and result["mode"] != "eager" else [result]
    statistics = [name for name in result["stages"]["e2e_ms"] if name != "std"]
    bars = [(run, name) for run in runs for name in statistics]
    return {"title": "Time per request and stage", "unit": "milliseconds",
            "bars": [(run["mode"] + " " if len(runs) > 1 else "") + name.removesuffix(".0") for run, name in bars],
            "parts": {stage_name(key): [run["stages"][key][name] for run, name in bars]
                      for key in result["stages"] if key != "e2e_ms"}}


def latency_chart(result):
    lines = {}
    cases = result["results"]
    for case in cases:
        count, threads = case["count"], case["threads"]
        name = f", {count} image{'s' * (count != 1)}" if len({one["count"] for one in cases}) > 1 else ""
        if len({one["threads"] for one in cases}) > 1:
            name += f", {threads} thread{'s' * (threads != 1)}" if threads else ", all threads"
        for mode in ("eager", "replay"):
            if case[mode + "_ms"]:
                lines.setdefault(mode + name, []).append((case["patches"], case[mode + "_ms"]["median"]))
    return {"title": "Latency of the tower, median", "x": "patches per item", "y": "milliseconds",
            "log": "xy", "lines": lines}


def serve_chart(result):
    batcher = [one for one in result["results"] if "delay_us" in one]
    return {"title": "Latency of a request", "x": "longest delay of a batch, milliseconds", "y": "milliseconds",
            "log": "", "lines": {name: [(one["delay_us"] / 1e3, one["latency_ms"][name]) for one in batcher]
                                 for name in ("median", "p99")}}


def cache_chart(result):
    lines = {}
    for one in result["results"]:
        point = (one["capacity_bytes"] / 2**20, one["hit_rate"] * 100)
        lines.setdefault(one["storage"], []).append(point)
    return {"title": "Items that were in the cache", "x": "memory, MiB", "y": "hit rate, per cent", "log": "x",
            "lines": lines}


CHARTS = {"latency": latency_chart, "throughput": throughput_chart, "serve": serve_chart, "cache": cache_chart,
          "mm-processor": requests_chart}


def chart_of(result):
    if "slowest_items" in result:
        return items_chart(result)
    if result.get("benchmark") not in CHARTS:
        raise ValueError(f"expected a benchmark of {', '.join(CHARTS)}, or encode --stats")
    return CHARTS[result["benchmark"]](result)


# --- axes ---


def number(value):
    """The shortest text of a tick."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def linear_ticks(most, count=6):
    """Round numbers from 0 to `most` or beyond."""
    most = most if most > 0 else 1
    rough = most / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [i * step for i in range(math.ceil(most / step - 1e-9) + 1)]


def log_ticks(least, most):
    """1, 2 and 5 times powers of ten, around all values."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 2)
    all_ticks = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    first = max(i for i, tick in enumerate(all_ticks) if tick <= least * (1 + 1e-9))
    last = next(i for i, tick in enumerate(all_ticks) if tick >= most * (1 - 1e-9))
    return all_ticks[first:last + 1]


def axis(ticks, is_log, begin, end):
    """Where a value stands between two pixels."""
    place = math.log if is_log else float
    low, span = place(ticks[0]), place(ticks[-1]) - place(ticks[0]) or 1
    return lambda value: begin + (place(value) - low) / span * (end - begin)


# --- drawing ---


def text(x, y, content, anchor="start", size=12, turn=""):
    content = escape("".join(c if c.isprintable() else "?" for c in content))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>{content}</text>'


def line(x0, y0, x1, y1, colour):
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}"/>'


def rect(x, y, width, height, colour, tip=""):
    shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"'
    return shape + (f"><title>{escape(tip)}</title></rect>" if tip else "/>")


def legend(names, right):
    """Swatches and names in rows, and the y below them."""
    x, y, shapes = MARGIN, LEGEND_TOP, []
    for name, colour in zip(names, COLOURS * len(names)):
        width = 34 + CHARACTER * len(name)
        if x > MARGIN and x + width > right:
            x, y = MARGIN, y + 20
        shapes += [rect(x, y, 12, 12, colour), text(x + 18, y + 10, name)]
        x += width
    return shapes, y + 20


def draw_bars(chart):
    totals = [sum(values) for values in zip(*chart["parts"].values())]
    ticks = linear_ticks(max(totals, default=0))
    left = MARGIN + CHARACTER * max(map(len, chart["bars"]), default=0) + 10
    width = left + 640
    at = axis(ticks, False, left, left + 560)
    shapes, top = legend(chart["parts"], width)
    bottom = top + 6 + 24 * len(totals)
    for tick in ticks:
        shapes += [line(at(tick), top + 6, at(tick), bottom, GRID), text(at(tick), bottom + 16, number(tick), "middle")]
    for row, (label, total) in enumerate(zip(chart["bars"], totals)):
        y, done = top + 9 + 24 * row, 0
        shapes.append(text(left - 8, y + 13, label, "end"))
        for (name, values), colour in zip(chart["parts"].items(), COLOURS * len(totals)):
            if values[row] > 0:
                shapes.append(rect(at(done), y, at(done + values[row]) - at(done), 18, colour,
                                   f"{name}: {values[row]:.3f}"))
                done += values[row]
        shapes.append(text(at(done) + 6, y + 13, f"{total:.2f}"))
    shapes.append(text(left + 280, bottom + 36, chart["unit"], "middle"))
    return shapes, width, bottom + 56


def draw_lines(chart):
    lines = {name: sorted(points) for name, points in chart["lines"].items()}
    left, right = 80, 730
    shapes, top = legend(lines, right)
    top, bottom = top + 10, top + 350
    axes = []
    for coordinate, name, ends in ((0, "x", (left, right)), (1, "y", (bottom, top))):
        values = sorted({point[coordinate] for points in lines.values() for point in points}) or [0, 1]
        is_log = name in chart["log"] and values[0] > 0
        few = name == "x" and len(values) <= 10  # 64, 256 and 1024 patches say more than round numbers
        ticks = values if few else log_ticks(values[0], values[-1]) if is_log else linear_ticks(values[-1])
        axes.append((ticks, axis(ticks, is_log, *ends)))
    (x_ticks, x), (y_ticks, y) = axes
    for tick in y_ticks:
        shapes += [line(left, y(tick), right, y(tick), GRID), text(left - 8, y(tick) + 4, number(tick), "end")]
    for tick in x_ticks:
        shapes += [line(x(tick), bottom, x(tick), bottom + 5, INK), text(x(tick), bottom + 20, number(tick), "middle")]
    shapes += [line(left, bottom, right, bottom, INK), line(left, top, left, bottom, INK),
               text((left + right) / 2, bottom + 42, chart["x"], "middle"),
               text(0, 0, chart["y"], "middle",
                    turn=f' transform="translate({MARGIN + 6} {(top + bottom) / 2:.1f}) rotate(-90)"')]
    for (name, points), colour in zip(lines.items(), COLOURS * len(lines)):
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        shapes.append(f'<polyline fill="none" stroke-width="2" stroke="{colour}" points="{path}"/>')
        shapes += [f'<circle r="3.5" cx="{x(a):.1f}" cy="{y(b):.1f}" fill="{colour}">'
                   f"<title>{escape(name)}: {number(a)}, {number(b)}</title></circle>" for a, b in points]
    return shapes, 760, bottom + 62


def to_svg(chart):
    shapes, width, height = (draw_bars if "bars" in chart else draw_lines)(chart)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" fill="{INK}" role="img">',
        f"<title>{escape(chart['title'])}</title>", rect(0, 0, width, height, "#ffffff"),
        text(MARGIN, MARGIN + 16, chart["title"], size=16), *shapes, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path, help="JSON of the program")
    parser.add_argument("chart", type=Path, help="SVG to write")
    options = parser.parse_args()
    try:
        chart = chart_of(json.loads(options.measured.read_text(encoding="utf-8")))
    except (ValueError, KeyError) as error:
        parser.error(f"{options.measured}: {error}")
    options.chart.write_text(to_svg(chart), encoding="utf-8")


if __name__ == "__main__":
    main()
