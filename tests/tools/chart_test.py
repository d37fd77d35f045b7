"""The charts of tools/chart.py: what they show of each JSON, and that it is SVG."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import chart  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def summary(median):
    return {"mean": median + 1.0, "median": median, "p99": median + 2.0}


def drawn(result):
    """Texts, tips and numbers of shapes of the chart of a result."""
    root = ElementTree.fromstring(chart.to_svg(chart.chart_of(result)))
    texts = [element.text for element in root.iter(SVG + "text")]
    tips = [element.text for element in root.iter(SVG + "title")][1:]
    shapes = {name: len(list(root.iter(SVG + name))) for name in ("rect", "path", "polyline")}
    return texts, tips, shapes


class Charts(unittest.TestCase):
    def test_latency_has_a_line_per_mode_count_and_threads(self):
        cases = [{"threads": threads, "count": count, "patches": patches, "eager_ms": summary(patches / 8),
                  "replay_ms": summary(patches / 16) if patches < 256 else None}
                 for threads in (0, 1) for count, patches in ((1, 64), (1, 256), (3, 40))]
        texts, tips, shapes = drawn({"benchmark": "latency", "results": cases})
        for name in ("eager, 1 image, all threads", "replay, 3 images, 1 thread", "patches per item", "256"):
            self.assertIn(name, texts)
        self.assertIn("eager, 1 image, all threads: 64, 8", tips)
        self.assertEqual((shapes["polyline"], shapes["path"]), (8, 10 + 8))  # a mark per point, a label per line

    def test_latency_names_only_what_differs(self):
        cases = [{"threads": 0, "count": 1, "patches": 64, "eager_ms": summary(8), "replay_ms": None}]
        texts, _, _ = drawn({"benchmark": "latency", "results": cases})
        self.assertIn("eager", texts)

    def test_throughput_has_a_bar_per_statistic(self):
        stages = {"read_ms": summary(1), "encode_ms": summary(2)}
        texts, tips, _ = drawn({"benchmark": "throughput", "stages": stages})
        self.assertIn("Time per item and stage", texts)
        self.assertEqual(tips, ["read: 2.000", "encode: 3.000", "read: 1.000", "encode: 2.000",
                                "read: 3.000", "encode: 4.000"])

    def test_requests_are_shown_in_both_modes(self):
        stages = {"read_ms": {"mean": 1, "std": 9, "p99.0": 2}, "encoder_forward_ms": {"mean": 3, "std": 9, "p99.0": 4},
                  "e2e_ms": {"mean": 5, "std": 9, "p99.0": 6}}
        result = {"benchmark": "mm-processor", "mode": "graphs", "stages": stages}
        self.assertIn("p99", drawn(result)[0])
        texts, tips, _ = drawn({**result, "eager": {"mode": "eager", "stages": stages}})
        for name in ("eager mean", "graphs p99", "encoder forward", "4.00", "6.00"):
            self.assertIn(name, texts)
        self.assertNotIn("e2e", " ".join(tips))

    def test_serve_shows_the_batcher_alone(self):
        results = [{"way": "one call", "latency_ms": summary(1)},
                   {"way": "batcher", "delay_us": 0, "latency_ms": summary(2)},
                   {"way": "batcher", "delay_us": 5000, "latency_ms": summary(3)}]
        _, tips, shapes = drawn({"benchmark": "serve", "results": results})
        self.assertEqual(tips, ["median: 0, 2", "median: 5, 3", "p99: 0, 4", "p99: 5, 5"])
        self.assertEqual(shapes["polyline"], 2)

    def test_cache_shows_both_storages(self):
        results = [{"storage": storage, "capacity_bytes": size * 2**20, "hit_rate": size / 100}
                   for size in (50, 5) for storage in ("compact", "scattered")]
        _, tips, _ = drawn({"benchmark": "cache", "results": results})
        self.assertEqual(tips[:2], ["compact: 5, 5", "compact: 50, 50"])

    def test_items_are_named(self):
        item = {"name": "a<b>&\x1b" + "x" * 60 + ".jpg", **{stage + "_ms": 1.0 for stage in chart.STAGES}}
        result = {"items": 3, "failed_items": 1, "slowest_items": [item, item]}
        texts, _, _ = drawn(result)
        self.assertIn("Time per item", texts)
        self.assertIn("..." + "x" * 25 + ".jpg", texts)
        self.assertIn("6.00", texts)
        self.assertIn("Time per item, the slowest 2", drawn({**result, "items": 9})[0])
        self.assertIn("a<b>&?.jpg", drawn({**result, "slowest_items": [{**item, "name": "a<b>&\x1b.jpg"}]})[0])

    def test_nothing_measured_is_an_empty_chart(self):
        for result in ({"benchmark": "serve", "results": []},
                       {"items": 0, "failed_items": 0, "slowest_items": []}):
            self.assertTrue(drawn(result)[0])


    def test_lines_that_lie_on_each_other_are_both_seen(self):
        cases = [{"threads": 0, "count": 1, "patches": patches, "eager_ms": summary(1), "replay_ms": summary(1)}
                 for patches in (64, 256)]
        root = ElementTree.fromstring(chart.to_svg(chart.chart_of({"benchmark": "latency", "results": cases})))
        below, above = root.iter(SVG + "polyline")
        self.assertEqual(below.get("points"), above.get("points"))
        self.assertIsNone(below.get("stroke-dasharray"))
        self.assertTrue(above.get("stroke-dasharray"))
        sizes = [float(path.get("transform").split("scale(")[1][:-1]) for path in root.iter(SVG + "path")
                 if path.get("transform")]
        self.assertEqual(sizes, [6, 6, 4, 4])
        places = [float(element.get("y")) for element in root.iter(SVG + "text") if element.text in ("eager", "replay")]
        self.assertGreaterEqual(abs(places[0] - places[1]), 15)

    def test_labels_keep_their_order_and_their_distance(self):
        self.assertEqual(chart.spread([50, 10, 51], 20, 0, 100), [50, 10, 70])
        self.assertEqual(chart.spread([95, 99], 20, 0, 100), [80, 100])
        self.assertEqual(chart.spread([5, 5, 5], 20, 0, 10), [0, 20, 40])

    def test_packing_has_a_bar_per_sub_batch_with_its_items(self):
        image = {"modality": "image", "source_width_px": 640, "source_height_px": 480, "num_frames": 1, "rows": 300}
        video = {**image, "modality": "video", "num_frames": 8, "rows": 900}
        result = {"model": "m", "items": [image, image, video], "paths": ["default"],
                  "token_budgets": {"default": [1024]},
                  "batches": [{"items": [0, 1], "tokens": [600], "budgets": [1024]},
                              {"items": [2], "tokens": [900], "budgets": [None]}]}
        texts, tips, shapes = drawn(result)
        self.assertIn("m: 3 items in 2 sub-batches, 1 of 2 replayed", texts)
        self.assertIn("2 items, 600 rows of 1024", texts)
        self.assertIn("1 item, 900 rows, eager", texts)
        self.assertEqual(tips, ["640x480: 300", "640x480: 300", "640x480x8f: 900"])
        two = {**result, "paths": ["global", "local"],
               "batches": [{"items": [0, 1], "tokens": [600, 50], "budgets": [1024, None]}]}
        self.assertIn("0 local", drawn(two)[0])


class Ticks(unittest.TestCase):
    def test_are_round_numbers_around_all_values(self):
        self.assertEqual([chart.number(tick) for tick in chart.linear_ticks(0)], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
        self.assertEqual(chart.linear_ticks(11), [0, 2, 4, 6, 8, 10, 12])
        self.assertEqual(chart.log_ticks(3, 40), [2, 5, 10, 20, 50])
        self.assertEqual(chart.log_ticks(1, 1), [1])
        self.assertEqual([chart.number(value) for value in (0, 1.5, 2000, 0.0004)], ["0", "1.5", "2000", "0"])


class Program(unittest.TestCase):
    def run_on(self, result):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "in.json"), Path(folder, "out.svg")
            source.write_text(result if isinstance(result, str) else json.dumps(result))
            done = subprocess.run([sys.executable, TOOLS / "chart.py", source, target], capture_output=True, text=True)
            return done, target.read_text() if target.exists() else None

    def test_writes_a_file(self):
        done, svg = self.run_on({"benchmark": "serve", "results": []})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(svg.startswith("<svg"))

    def test_refuses_what_it_has_no_chart_for(self):
        for result in ({"benchmark": "capture"}, {}, "{", {"benchmark": "latency"}):
            done, svg = self.run_on(result)
            self.assertEqual((done.returncode, svg), (2, None))


if __name__ == "__main__":
    unittest.main()
