"""The server page as a person sees it: in a real browser, light and dark, with numbers that move by themselves."""

import asyncio
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.browser import browser, screenshot
from tests.support.up import Up, weir_up
from weir.client.smp import SmpClient
from weir.crypto.keys import generate
from weir.wire.smp.commands import NEW
from weir.wire.smp.replies import IDS

pytestmark = pytest.mark.needs("chromium", "chromedriver")

SETTINGS = """
[information]
source_code = "https://example.org/weir"
operator = "Example Network"
operator_country = "DE"
website = "https://example.org"
admin_email = "admin@example.org"
server_country = "DE"
hosting = "Example Hosting"
hosting_type = "dedicated"
usage_conditions = "https://example.org/terms"
"""


def number(chrome: Chrome, key: str) -> str:
    return chrome.find_element(By.ID, key).text


def wait_for(chrome: Chrome, key: str, value: str) -> None:
    WebDriverWait(chrome, 20).until(lambda c: number(c, key) == value, f"{key} should become {value}")


async def use(up: Up, hold: asyncio.Event, connected: asyncio.Event) -> None:
    async with await SmpClient.connect(up.address) as client:
        for _ in range(3):
            key = generate("x25519")
            assert isinstance(await client.send(NEW(key.spki, generate("x25519").public), b"", key), IDS)
        connected.set()
        await hold.wait()


async def test_the_page_is_complete_and_alive(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.toml").write_text(SETTINGS)
    with weir_up(home) as up, browser() as chrome:
        await asyncio.to_thread(chrome.get, up.http)
        assert "Example Network" in chrome.title
        assert chrome.find_element(By.ID, "address").text == up.address
        body = chrome.find_element(By.TAG_NAME, "body").text
        for part in ("Example Network (DE)", "admin@example.org", "Example Hosting", "dedicated", "open to everybody"):
            assert part in body
        qr = chrome.find_element(By.CSS_SELECTOR, ".qr svg")
        assert qr.size["width"] > 150 and qr.size["width"] == qr.size["height"]

        await asyncio.to_thread(wait_for, chrome, "edges", "2")
        await asyncio.to_thread(wait_for, chrome, "queues", "0")
        hold, connected = asyncio.Event(), asyncio.Event()
        client = asyncio.create_task(use(up, hold, connected))
        await connected.wait()
        # Nobody reloads: the numbers come by themselves.
        await asyncio.to_thread(wait_for, chrome, "queues", "3")
        await asyncio.to_thread(wait_for, chrome, "connections", "1")
        assert chrome.find_element(By.ID, "live").text == "live"
        assert not chrome.find_element(By.ID, "problems").is_displayed()
        screenshot(chrome, "page-light")
        hold.set()
        await client
        await asyncio.to_thread(wait_for, chrome, "connections", "0")

        chrome.execute_script("report(['Redis is slow.', 'Its disk is full.'])")
        assert chrome.find_element(By.ID, "problems").text == "Redis is slow. Its disk is full."
        errors = [entry for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
        assert not errors
        loaded = chrome.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        assert loaded and all(name.startswith(up.http) for name in loaded), loaded

        chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        )
        background = "return getComputedStyle(document.body).backgroundColor"
        assert chrome.execute_script(background) == "rgb(14, 20, 25)"
        screenshot(chrome, "page-dark")
        chrome.set_window_size(420, 1500)
        assert chrome.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        screenshot(chrome, "page-phone")


async def test_it_says_so_when_the_router_is_gone(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home") as up, browser() as chrome:
        await asyncio.to_thread(chrome.get, up.http)
        await asyncio.to_thread(wait_for, chrome, "live", "live")
        up.stop()
        await asyncio.to_thread(wait_for, chrome, "live", "no answer")
