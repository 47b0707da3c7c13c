"""The local trace viewer of `weir up --traces`: the Zipkin server, which is kept in ~/.cache/weir."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

from weir.cli.errors import Fail

_VERSION = "3.5.1"
_ARTIFACT = f"io.zipkin:zipkin-server:{_VERSION}:jar:exec"
_JAVA_LEAST = 17


class TraceViewer:
    """A Zipkin process on a free loopback port. Zipkin answers some seconds after its start; `start` does not wait."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, directory: str) -> None:
        self._process = process
        self._directory = directory
        self.url = url

    @staticmethod
    async def start() -> TraceViewer:
        java = await _find_java()
        jar = await _find_jar()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        directory = tempfile.mkdtemp(prefix="weir-zipkin-")
        process = await asyncio.create_subprocess_exec(
            java,
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            f"-Djava.io.tmpdir={directory}",
            "-Darmeria.ports[0].ip=127.0.0.1",
            f"-Darmeria.ports[0].port={port}",
            "-Darmeria.ports[0].protocols[0]=http",
            "-jar",
            str(jar),
            env={**os.environ, "QUERY_PORT": str(port), "LOGGING_LEVEL_ROOT": "WARN"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        return TraceViewer(process, f"http://127.0.0.1:{port}", directory)

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(5):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


async def _find_java() -> str:
    needed = "--traces needs Java 17 or newer for the trace viewer (Debian: apt install openjdk-17-jre-headless)"
    java = shutil.which("java")
    if java is None:
        raise Fail(needed)
    process = await asyncio.create_subprocess_exec(
        java, "-version", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, text = await process.communicate()
    version = re.search(rb'version "(\d+)', text)
    if version is None or int(version[1]) < _JAVA_LEAST:
        raise Fail(f"{needed}; {java} is older")
    return java


async def _find_jar() -> Path:
    """Return the path of Zipkin's jar. Maven downloads the jar when it is not in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"
    jar = cache / f"zipkin-server-{_VERSION}-exec.jar"
    if jar.exists():
        return jar
    maven = shutil.which("mvn")
    if maven is None:
        raise Fail(f"--traces needs {jar}, or Maven to fetch it (Debian: apt install maven)")
    print(f"downloading the trace viewer ({_ARTIFACT}) with Maven; this happens once", flush=True)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        for goal in (
            ("dependency:get", f"-Dartifact={_ARTIFACT}", "-Dtransitive=false"),
            ("dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={directory}"),
        ):
            process = await asyncio.create_subprocess_exec(
                maven,
                "-q",
                "-B",
                *goal,
                cwd=directory,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await process.communicate()
            if process.returncode:
                last = output.decode("utf-8", "replace").strip().splitlines()[:1]
                raise Fail(f"Maven could not fetch {_ARTIFACT}: {last[0] if last else 'no reason given'}")
        (Path(directory) / jar.name).replace(jar)
    return jar
