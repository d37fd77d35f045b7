#!/usr/bin/env python3
"""Uses the pages of a server as a reader would, in a headless browser.

usage: page_test.py [URL] [--screenshot FILE]

Without a URL it starts $FOVEA_TEST_PROGRAM with $FOVEA_TEST_MODEL. Needs Playwright (PyPI) and a Chromium; says so and ends with 77, which CTest takes for "skipped",
where one of them is missing. The browser is the one that $CHROMIUM names, or `chromium` of the PATH.
"""

import argparse
import contextlib
import os
import shutil
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "program"))
from served import Served

SKIPPED = 77


def png(side: int) -> bytes:
    """A picture with a bright disc on a dark ground."""
    middle = side / 2
    rows = b""
    for y in range(side):
        rows += b"\0"
        for x in range(side):
            inside = (x - middle) ** 2 + (y - middle) ** 2 < (side / 4) ** 2
            rows += bytes((240, 200, 60) if inside else (20, 30, 60 + x * 100 // side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def cells(page, table: str) -> dict:
    rows = page.locator(f"#{table} tr")
    return {rows.nth(i).locator("th").inner_text(): rows.nth(i).locator("td").inner_text()
            for i in range(rows.count())}


def check_encoding(page, picture: str) -> None:
    page.set_input_files("#file", picture)
    page.wait_for_selector("#result:visible", timeout=120_000)
    facts = cells(page, "facts")
    assert facts["Picture"] == "224 × 224 px", facts
    assert int(facts["Rows"].replace(",", "")) > 0, facts
    assert int(facts["Width of a row"].replace(",", "")) > 0, facts
    assert "seen from here" in cells(page, "times")
    assert "rows in" in page.locator("#status").inner_text()
    if page.locator("#map").is_visible():
        label = page.locator("#map").get_attribute("aria-label")
        assert "rows, from" in label, label
        colours = page.evaluate("""() => {
            const map = document.getElementById('map');
            const data = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
            const colours = new Set();
            for (let i = 0; i < data.length; i += 4) colours.add(data.slice(i, i + 3).join());
            return colours.size;
        }""")
        assert colours > 1, "the map has one colour"


def check_errors(page, folder: str, picture: str) -> None:
    broken = os.path.join(folder, "broken.png")
    with open(broken, "wb") as file:
        file.write(png(32)[:60])
    page.set_input_files("#file", broken)
    page.wait_for_selector("#error:visible", timeout=120_000)
    text = page.locator("#error").inner_text()
    assert "422" in text or "400" in text, text
    page.route("**/v1/encode*", lambda route: route.abort())
    page.set_input_files("#file", picture)
    page.wait_for_selector("text=cannot be reached", timeout=60_000)
    page.unroute("**/v1/encode*")


def check_keyboard(page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"
    for name in ("file", "key", "strength"):
        assert page.locator(f"label[for={name}]").count() == 1, name


def check_docs(page, url: str, screenshot: str) -> None:
    page.goto(url + "docs#post_v1_encode")
    page.wait_for_selector("#post_v1_encode[open] table", timeout=60_000)
    text = page.locator("#post_v1_encode").inner_text()
    for part in ("output.format", "ImageItem", "multipart/form-data", "curl -sS -X POST " + url):
        assert part in text, part
    if screenshot:
        page.screenshot(path=screenshot.replace(".png", "_docs.png"), full_page=True)
    page.locator("#post_v1_encode summary:text('Output')").click()
    assert "one of items, hf" in page.locator("#post_v1_encode").inner_text()
    page.fill("#find", "binary_data_size")
    shown = page.locator("details.route:visible")
    assert shown.count() == 2, [shown.nth(i).inner_text() for i in range(shown.count())]
    assert page.locator("section:visible").count() == 1


def use(browser, url: str, screenshot: str) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    complaints = []
    page.on("console", lambda message: complaints.append(message.text)
            if "Content Security Policy" in message.text else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(url)
    check_keyboard(page)
    page.wait_for_selector("#counters tr", timeout=60_000)
    assert "Requests" in cells(page, "counters")
    page.wait_for_function("document.getElementById('model').textContent.includes('·')",
                           timeout=120_000)
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "disc.png")
        with open(picture, "wb") as file:
            file.write(png(224))
        check_encoding(page, picture)
        if screenshot:
            page.screenshot(path=screenshot, full_page=True)
            page.emulate_media(color_scheme="dark")
            page.screenshot(path=screenshot.replace(".png", "_dark.png"), full_page=True)
        check_errors(page, folder, picture)
        if screenshot:
            page.screenshot(path=screenshot.replace(".png", "_error.png"), full_page=True)
    check_docs(page, url, screenshot)
    assert not complaints, complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?")
    parser.add_argument("--screenshot", default="")
    arguments = parser.parse_args()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("skipped: Playwright is not installed")
        return SKIPPED
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        print("skipped: there is no chromium")
        return SKIPPED
    with contextlib.ExitStack() as stack:
        url = arguments.url or stack.enter_context(Served()).address + "/"
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        use(browser, url, arguments.screenshot)
        browser.close()
    print("the pages work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
