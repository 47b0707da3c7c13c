"""The page of a notification router in a real browser: its own SMP servers, with numbers that move by themselves."""

import asyncio
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.browser import browser, screenshot
from tests.support.up import weir_up
from weir.cli.main import main

pytestmark = pytest.mark.needs("chromium", "chromedriver")


async def test_own_servers_are_listed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "ntf").mkdir(parents=True)
    (home / "ntf" / "weir.toml").write_text('[subscriber]\nown_server_domains = ["127.0.0.1"]\n')
    with weir_up(home, "--ntf", "--ntf-port", "0", "--edges", "1") as up, browser() as chrome:
        ntf = up.run["ntf"]
        await asyncio.to_thread(chrome.get, ntf["http"])
        assert chrome.find_element(By.ID, "address").text == ntf["address"]
        assert not chrome.find_element(By.ID, "own_servers").is_displayed()
        check = ["ntf", "check", "--address", ntf["address"], "--smp", up.address]
        assert await asyncio.to_thread(main, check) == 0
        table = chrome.find_element(By.ID, "own_servers")
        await asyncio.to_thread(
            WebDriverWait(chrome, 20).until, lambda _: "127.0.0.1 yes" in table.text, "the server is subscribed"
        )
        assert "last notification" in table.text
        screenshot(chrome, "ntf-page")
