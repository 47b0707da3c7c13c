"""Logging: one event a line, as text or JSON, without what libraries would tell of peers."""

import json
import subprocess
import sys

CODE = """
import logging
from weir.telemetry.setup import configure_logging
configure_logging({level!r}, {form!r})
logging.getLogger("weir.x").info("hello %s", "there")
logging.getLogger("weir.x").debug("detail")
logging.getLogger("aiohttp.access").info("127.0.0.1 GET /")
logging.getLogger("asyncio").debug("socket 127.0.0.1")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("weir.y").exception("failed")
"""


def logged(level: str, form: str) -> str:
    code = CODE.format(level=level, form=form)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == ""
    return done.stderr


def test_text() -> None:
    text = logged("info", "text")
    assert "INFO weir.x: hello there" in text
    assert "detail" not in text and "127.0.0.1" not in text


def test_json_is_one_object_a_line() -> None:
    info, detail, failed = (json.loads(line) for line in logged("debug", "json").splitlines())
    assert (info["level"], info["logger"], info["message"]) == ("info", "weir.x", "hello there")
    assert detail["level"] == "debug"
    assert failed["message"] == "failed" and "ZeroDivisionError" in failed["exception"]


def test_warnings_only() -> None:
    assert "hello" not in logged("warning", "text")
