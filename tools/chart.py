#!/usr/bin/env python3
"""Draws a chart of what the program has measured, as SVG that needs no fonts, scripts or other files.

    fovea bench latency MODEL --output-json latency.json
    python3 tools/chart.py latency.json latency.svg

The JSON is that of --output-json of `fovea bench latency`, `throughput`, `serve`, `cache` and `mm-processor`, of
`fovea encode --stats`, or of `fovea plan --json`; each has a chart of its own.
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
# Lines that lie on each other are told apart: the first is solid with the largest marks, each that is drawn over it has
# gaps and smaller marks of another form.
DASHES = ["", "9 6", "3 5", "12 4 3 4"]
MARKS = {  # outlines around 0, 0, of size 1
    "circle": "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z", "square": "M-.9 -.9H.9V.9H-.9Z", "triangle": "M0 -1.2L1.1 .8H-1.1Z",
    "diamond": "M0 -1.3L1.3 0L0 1.3L-1.3 0Z", "cross": "M-1 -1L1 1M1 -1L-1 1"}
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


def plan_chart(result):
    """A bar per sub-batch and path of `fovea plan`: its items, and the graph that they are replayed in."""
    paths = result["paths"]
    rows = [item["rows"] for item in result["items"]]
    bars = []
    for number, batch in enumerate(result["batches"]):
        for path, tokens, budget in zip(paths, batch["tokens"], batch["budgets"]):
            if tokens == 0:
                continue
            items = [(name_of_size(result["items"][i]), rows[i]) for i in batch["items"]]
            if sum(count for _, count in items) != tokens:  # a path with tokens of its own
                items = [(f"{len(items)} items", tokens)]
            bars.append({"label": f"{number}" + (f" {path}" if len(paths) > 1 else ""), "count": len(batch["items"]),
                         "items": items, "tokens": tokens, "budget": budget})
    replayed = sum(bar["budget"] is not None for bar in bars)
    title = f"{result.get('model', 'Packing')}: {len(rows)} items in {len(result['batches'])} sub-batches, "
    return {"title": title + (f"{replayed} of {len(bars)} replayed" if bars else "none"), "packing": bars}


def name_of_size(item):
    size = f"{item['source_width_px']}x{item['source_height_px']}"
    return size + (f"x{item['num_frames']}f" if item["modality"] == "video" else "")


CHARTS = {"latency": latency_chart, "throughput": throughput_chart, "serve": serve_chart, "cache": cache_chart,
          "mm-processor": requests_chart}


def chart_of(result):
    if "slowest_items" in result:
        return items_chart(result)
    if "batches" in result and "token_budgets" in result:
        return plan_chart(result)
    if result.get("benchmark") not in CHARTS:
        raise ValueError(f"expected a benchmark of {', '.join(CHARTS)}, encode --stats, or plan --json")
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


def marks(points, index, count, colour, name):
    """Outlines at points (x, y, tip), so that what lies below them is seen; the size falls from line to line."""
    outline = list(MARKS.values())[index % len(MARKS)]
    size = 4 + 2 * min(count - 1 - index, 3)
    return [f'<path transform="translate({x:.1f} {y:.1f}) scale({size})" d="{outline}" fill="#ffffff" fill-opacity="0"'
            f' stroke="{colour}" stroke-width="{2 / size:.2f}"><title>{escape(name)}: {escape(tip)}</title></path>'
            for x, y, tip in points]


def spread(wanted, gap, low, high):
    """Places as near to the wanted ones as the gap between them allows, in their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = {}
    floor = low
    for i in order:
        places[i] = floor = max(wanted[i], floor)
        floor += gap
    ceiling = max(high, low + gap * (len(wanted) - 1))
    for i in reversed(order):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    return [places[i] for i in range(len(wanted))]


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


def draw_packing(chart):
    """Sub-batches as what they are: items side by side, in the frame of a graph's budget where there is one."""
    bars = chart["packing"]
    ticks = linear_ticks(max((max(bar["tokens"], bar["budget"] or 0) for bar in bars), default=0))
    left = MARGIN + CHARACTER * max((len(bar["label"]) for bar in bars), default=0) + 10
    at = axis(ticks, False, left, left + 560)
    width = left + 560 + 34 * CHARACTER
    shapes, top = legend(["image", "video"], width)
    shapes += [f'<rect x="{MARGIN + 150}" y="{LEGEND_TOP}" width="24" height="12" fill="none" stroke="{INK}"/>',
               text(MARGIN + 180, LEGEND_TOP + 10, "graph, empty where it has rows that no item fills")]
    bottom = top + 6 + 22 * len(bars)
    for tick in ticks:
        shapes += [line(at(tick), top + 6, at(tick), bottom, GRID), text(at(tick), bottom + 16, number(tick), "middle")]
    for row, bar in enumerate(bars):
        y, done = top + 8 + 22 * row, 0
        shapes.append(text(left - 8, y + 13, bar["label"], "end"))
        for name, rows in bar["items"]:
            colour = COLOURS[name.endswith("f")]  # a video has frames
            gap = min(1, (at(rows) - at(0)) / 4)  # between neighbours
            shapes.append(rect(at(done), y, at(done + rows) - at(done) - gap, 18, colour, f"{name}: {rows}"))
            done += rows
        said = f"{bar['count']} item{'s' * (bar['count'] != 1)}, {bar['tokens']} rows"
        said += ", eager" if bar["budget"] is None else f" of {bar['budget']}"
        if bar["budget"] is not None:
            shapes.append(f'<rect x="{at(0):.1f}" y="{y - 1:.1f}" width="{at(bar["budget"]) - at(0):.1f}" height="20"'
                          f' fill="none" stroke="{INK}"/>')
        shapes.append(text(left + 572, y + 13, said))
    shapes.append(text(left + 280, bottom + 36, "rows", "middle"))
    return shapes, width, bottom + 56


def draw_lines(chart):
    lines = {name: sorted(points) for name, points in chart["lines"].items()}
    left, right = 80, 640
    width = right + 34 + CHARACTER * max(map(len, lines), default=0) + MARGIN
    shapes, top, bottom = [], LEGEND_TOP + 10, LEGEND_TOP + 350
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
    drawn = [(name, [(x(a), y(b), f"{number(a)}, {number(b)}") for a, b in points]) for name, points in lines.items()]
    drawn = [(name, points) for name, points in drawn if points]
    labels = spread([points[-1][1] for _, points in drawn], 17, top, bottom)
    for index, ((name, points), label) in enumerate(zip(drawn, labels)):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b, _ in points)
        dash = DASHES[index % len(DASHES)]
        shapes.append(f'<polyline fill="none" stroke-width="2" stroke="{colour}"'
                      + (f' stroke-dasharray="{dash}"' if dash else "") + f' points="{path}"/>')
        shapes += marks(points, index, len(drawn), colour, name)
        end_x, end_y, _ = points[-1]
        shapes += [f'<path fill="none" stroke="{colour}" d="M{end_x + 12:.1f} {end_y:.1f}L{right + 24} {label:.1f}"/>',
                   f'<g fill="{colour}">{text(right + 28, label + 4, name)}</g>']
    return shapes, width, bottom + 62


def to_svg(chart):
    draw = draw_bars if "bars" in chart else draw_packing if "packing" in chart else draw_lines
    shapes, width, height = draw(chart)
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
