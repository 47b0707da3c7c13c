"""A real browser: Debian's chromium, headless, with nothing of its own on the network."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


@contextmanager
def browser(*, dark: bool = False, width: int = 1100, height: int = 1250) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"--window-size={width},{height}", *(["--force-dark-mode"] if dark else [])):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="weir-chromium-") as profile:
        options.add_argument(f"--user-data-dir={profile}")
        chrome = Chrome(options, Service(shutil.which("chromedriver") or ""))
        try:
            yield chrome
        finally:
            chrome.quit()


def screenshot(chrome: Chrome, name: str) -> Path:
    """Kept under build/ for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    assert chrome.save_screenshot(str(path))
    return path
