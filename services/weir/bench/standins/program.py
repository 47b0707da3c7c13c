"""The answers that a stand-in is told to give, and the requests that it has received."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any, NamedTuple

from weir.bench.standins.server import Answer, Received

_NOT_FOUND = Answer(404)


class Arrived(NamedTuple):
    """A push that the service accepted. `body` is as it was sent, `plain` decrypted where the stand-in can do that."""

    target: str
    headers: dict[str, str]
    body: bytes
    plain: bytes


class Program:
    """Answers by target (a device token, or the id of a subscription), or for whoever comes next.

    Without an answer in the program, the stand-in judges the request as its service does.
    """

    def __init__(self, *, record: bool = True) -> None:
        self._record = record
        self._next: deque[Answer] = deque()
        self._by_target: dict[str, deque[Answer]] = {}
        self._changed = asyncio.Event()
        self.always: Answer | None = None
        self.arrived: list[Arrived] = []
        self.count = 0  # requests, whatever the answer was

    def answer_next(self, *answers: Answer) -> None:
        self._next.extend(answers)

    def answer(self, target: str, *answers: Answer) -> None:
        self._by_target.setdefault(target, deque()).extend(answers)

    def take(self, target: str) -> Answer | None:
        """The answer to this request; None: the service decides."""
        self.count += 1
        self._changed.set()
        planned = self._by_target.get(target) or self._next
        return planned.popleft() if planned else self.always

    def accept(self, push: Arrived) -> None:
        if self._record:
            self.arrived.append(push)

    async def wait_for(self, requests: int) -> None:
        """Wait until this many requests have come."""
        while self.count < requests:
            self._changed.clear()
            await self._changed.wait()

    def control(self, request: Received) -> Answer:
        """Requests of tests in other processes:

        GET /standin/pushes            {"count": requests, "pushes": [{"target", "headers", "plain"}]}
        POST /standin/answers          {"target": text or null, "answers": [{"status", "headers", "body", "delay",
                                       "failure"}], "always": answer or null}
        """
        if request.method == "GET" and request.path == "/standin/pushes":
            pushes = [
                {"target": one.target, "headers": one.headers, "plain": one.plain.decode("latin-1")}
                for one in self.arrived
            ]
            return as_json(200, {"count": self.count, "pushes": pushes})
        if request.method == "POST" and request.path == "/standin/answers":
            wanted = json.loads(request.body)
            answers = [_answer(one) for one in wanted.get("answers", ())]
            if wanted.get("target") is None:
                self.answer_next(*answers)
            else:
                self.answer(wanted["target"], *answers)
            if "always" in wanted:
                self.always = None if wanted["always"] is None else _answer(wanted["always"])
            return Answer(204)
        return _NOT_FOUND


def as_json(status: int, value: object) -> Answer:
    return Answer(status, (("content-type", "application/json"),), json.dumps(value).encode())


def _answer(value: dict[str, Any]) -> Answer:
    headers = tuple(value.get("headers", {}).items())
    return Answer(
        value.get("status", 200),
        headers,
        value.get("body", "").encode(),
        value.get("delay", 0.0),
        value.get("failure"),
    )
