"""The page says what the router offers."""

from dataclasses import replace
from pathlib import Path

from weir.notifier.config import Apns, NotifierConfig, WebPush
from weir.notifier.surface.page import render_page

ADDRESS = "ntf://fingerprint@ntf.example.org?vapid=key"


def test_what_is_offered() -> None:
    bare = render_page(NotifierConfig(), ADDRESS, "1")
    assert "SimpleX notification router" in bare and ADDRESS in bare
    assert bare.count("not supported here") == 2
    config = replace(
        NotifierConfig(), apns=Apns(key=Path("a.p8"), topic="org.example.app"), web_push=WebPush(vapid_key=Path("v"))
    )
    assert 'data-rows="own_servers"' in bare and "last notification" in bare
    assert 'data-rows="pushes"' in bare and "device gone" in bare
    full = render_page(config, ADDRESS, "1")
    assert "app org.example.app" in full and "not supported here" not in full
