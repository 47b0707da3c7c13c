"""The page in a real browser: at two widths, in light and dark, without the network, with the keyboard alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.pipeline.report.given import Given, joined
from tests.support.browser import browser, screenshot
from weir.pipeline.report.build import report
from weir.pipeline.report.page import render
from weir.pipeline.report.public import Noise

pytestmark = [pytest.mark.spark, pytest.mark.needs("chromium", "chromedriver")]

_LEAST_CONTRAST = 4.5  # WCAG AA
_LIMIT = 120

# The least contrast of visible text with what is behind it, and which text that is.
_CONTRAST = """
const luminance = (c) => {
  const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const [r, g, b, a = 1] = parse(getComputedStyle(element).backgroundColor);
    if (a > 0.99) return [r, g, b];
  }
  return [255, 255, 255];
};
let worst = [99, ""];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const style = getComputedStyle(element);
  if (!own || !element.getClientRects().length || element.closest(".hidden, .skip, script")) continue;
  const colour = element.closest("svg") ? style.fill : style.color;
  if (!colour.startsWith("rgb")) continue;
  const [a, b] = [luminance(parse(colour).slice(0, 3)), luminance(behind(element))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < worst[0]) worst = [contrast, `${element.tagName} ${element.textContent.slice(0, 40)}`];
}
return worst;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from weir.pipeline.report.drawing import script

    eventful = Given(21, gaps=[range(24 * 15, 24 * 15 + 7)], incidents=[range(24 * 18 + 13, 24 * 18 + 16)])
    rows = joined(eventful.rows(), Given(21, program="ntf").rows())
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(report(rows, 14), script(), "0.1.0"))
    path.with_name("public.html").write_text(render(report(rows, 14, noise=Noise(bytes(32))), script(), "0.1.0"))
    return path


@contextmanager
def opened(page: Path, width: int, *, dark: bool = False) -> Iterator[Chrome]:
    with browser(width=width, height=1000) as chrome:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chrome.get(page.as_uri())
        WebDriverWait(chrome, _LIMIT).until(
            lambda c: c.execute_script("return document.documentElement.dataset.drawn") == "all", "all plots are drawn"
        )
        yield chrome


def console(chrome: Chrome) -> list[Any]:
    return list(chrome.get_log("browser"))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_is_whole(page: Path, width: int, dark: bool) -> None:
    with opened(page, width, dark=dark) as chrome:
        assert console(chrome) == []
        assert chrome.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
        assert chrome.execute_script("return document.documentElement.scrollWidth") == width
        plots = chrome.find_elements(By.CSS_SELECTOR, ".plot[data-drawn]")
        visible = chrome.execute_script(
            "return [...document.querySelectorAll('.plot')].filter((p) => p.clientWidth).length"
        )
        assert len(plots) == visible >= 14
        sizes = chrome.execute_script(
            "return [...document.querySelectorAll('.plot[data-drawn]')].map((plot) => {"
            " const svg = plot.querySelector('svg').getBoundingClientRect();"
            " return [svg.width, plot.clientWidth, svg.height]; })"
        )
        assert all(0 < drawn <= room + 1 and height > 100 for drawn, room, height in sizes), sizes
        contrast, text = chrome.execute_script(_CONTRAST)
        assert contrast >= _LEAST_CONTRAST, text
        screenshot(chrome, f"report-{width}-{'dark' if dark else 'light'}")


def test_the_keyboard_reads_a_plot(page: Path) -> None:
    with opened(page, 1200) as chrome:
        plot = chrome.find_element(By.CSS_SELECTOR, ".plot[role=slider]")
        plot.send_keys(Keys.HOME)
        first = plot.get_attribute("aria-valuetext")
        plot.send_keys(Keys.ARROW_RIGHT)
        second = plot.get_attribute("aria-valuetext")
        assert first is not None and first.startswith("Mon 14 Sep 00:00: sent ")
        assert second is not None and second.startswith("Mon 14 Sep 01:00: sent ")
        box = plot.find_element(By.CSS_SELECTOR, ".readout")
        assert box.is_displayed() and "received" in box.text
        plot.send_keys(Keys.ESCAPE)
        assert not box.is_displayed()
        plot.send_keys(Keys.END, Keys.ARROW_RIGHT)
        assert plot.get_attribute("aria-valuenow") == plot.get_attribute("aria-valuemax") == "335"


def test_the_keyboard_reaches_everything(page: Path) -> None:
    with opened(page, 1200) as chrome:
        body = chrome.find_element(By.TAG_NAME, "body")
        body.send_keys(Keys.TAB)
        assert chrome.switch_to.active_element.text == "Skip to the report"
        wanted = set(
            chrome.execute_script(
                "return [...document.querySelectorAll('.plot[role=slider], summary, nav a')]"
                ".filter((e) => e.clientWidth).map((e, i) => (e.dataset.place = String(i)))"
            )
        )
        reached: set[str] = set()
        for _ in range(len(wanted) + 60):
            reached.add(chrome.execute_script("return document.activeElement.dataset.place || ''"))
            chrome.switch_to.active_element.send_keys(Keys.TAB)
        assert wanted <= reached


def test_tables_and_choices_open_with_the_keyboard(page: Path) -> None:
    with opened(page, 1200) as chrome:
        summary = chrome.find_element(By.TAG_NAME, "summary")
        summary.send_keys(Keys.ENTER)
        table = chrome.find_element(By.CSS_SELECTOR, "details[open] table")
        assert "no data" in table.text and "Mon 14 Sep 00:00" in table.text
        radio = chrome.find_element(By.CSS_SELECTOR, ".choices input")
        radio.send_keys(Keys.ARROW_RIGHT)
        shown = [e for e in chrome.find_elements(By.CSS_SELECTOR, ".choice h4") if e.is_displayed()]
        assert shown[0].text.startswith("SEND to stored: ")
        drawn = ".choice:not([hidden]) .plot[data-drawn]"
        WebDriverWait(chrome, _LIMIT).until(lambda c: len(c.find_elements(By.CSS_SELECTOR, drawn)) == 2)
        assert console(chrome) == []


def test_the_pointer_reads_a_plot(page: Path) -> None:
    with opened(page, 390) as chrome:
        plot = chrome.find_element(By.CSS_SELECTOR, ".plot[role=slider]")
        chrome.execute_script(
            "const box = arguments[0].getBoundingClientRect();"
            "const at = {clientX: box.left + 200, clientY: box.top + 50};"
            "arguments[0].dispatchEvent(new PointerEvent('pointermove', at))",
            plot,
        )
        readout = plot.find_element(By.CSS_SELECTOR, ".readout")
        assert readout.is_displayed() and "sent" in readout.text
        assert chrome.execute_script("return document.documentElement.scrollWidth") == 390


def test_the_public_page_is_whole(page: Path) -> None:
    with opened(page.with_name("public.html"), 1200) as chrome:
        assert console(chrome) == []
        assert len(chrome.find_elements(By.CSS_SELECTOR, ".plot[data-drawn]")) >= 6
        screenshot(chrome, "report-public")
