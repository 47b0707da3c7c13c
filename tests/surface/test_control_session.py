"""A control session as a transcript, without a socket: roles, words, outages, what is logged."""

import logging
from collections.abc import AsyncIterator

import pytest

from weir.surface.control import backoff
from weir.surface.control.commands import Command, Refused, Role, life_commands
from weir.surface.control.session import Passwords, Session
from weir.surface.outage import Outage


class Away(Exception):
    pass


class Edge:
    def __init__(self) -> None:
        self.calls: list[str] = []

    async def suspend(self) -> None:
        self.calls.append("suspend")

    async def resume(self) -> None:
        raise OSError(98, "the words of asyncio")

    async def save(self) -> None:
        raise Away


async def echo(role: Role, arguments: list[str]) -> AsyncIterator[str]:
    if arguments[0] == "mistake":
        raise KeyError(arguments[1])
    if arguments[0] == "no":
        raise Refused("not that")
    yield f"{role.name}: {arguments}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_PAUSE", 0.0)


@pytest.fixture
def edge() -> Edge:
    return Edge()


@pytest.fixture
def session(edge: Edge) -> Session:
    commands = {"echo": Command(Role.USER, 2, echo), **life_commands(edge)}
    return Session(Passwords("boss", "helper"), commands, "echo A B", Outage((Away,), "the database is away"))


async def test_a_command_that_fails_unexpectedly(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """The session goes on. Neither the answer nor the log has what was typed."""
    await say(session, "auth boss")
    caplog.clear()
    failed = ["error: the command failed; the log of this edge says where"]
    await transcript(session, [("echo mistake secret", failed), ("echo 1 2", ["ADMIN: ['1', '2']"])])
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith("control port: echo failed (KeyError in test_control_session.py, line ")


async def say(session: Session, line: str) -> list[str]:
    return [text async for text in session.answer(line)]


async def transcript(session: Session, lines: list[tuple[str, list[str]]]) -> None:
    for line, expected in lines:
        assert await say(session, line) == expected, line


async def test_roles(session: Session) -> None:
    await transcript(
        session,
        [
            ("", []),
            ("help", ["echo A B"]),
            ("echo 1 2", ["AUTH"]),
            ("auth nobody", ["Current role is CPRNone"]),
            ("auth helper", ["Current role is CPRUser"]),
            ("echo 1 2", ["USER: ['1', '2']"]),
            ("suspend", ["AUTH"]),
            ("auth boss", ["Current role is CPRUser, start new session to change."]),
            ("suspend", ["AUTH"]),
        ],
    )


async def test_wrong_passwords_slow_their_address_down(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every session of the address, and in no session of another one. A session with a role is not concerned."""
    shared = backoff.Backoff()

    def new(address: str) -> Session:
        opened = Session(Passwords("boss", "helper"), {}, "", Outage((), ""))
        opened.address, opened.backoff = address, shared
        return opened

    inside = new("192.0.2.1")
    assert await say(inside, "auth boss") == ["Current role is CPRAdmin"]
    for _ in range(3):
        assert await say(new("192.0.2.1"), "auth guess") == ["Current role is CPRNone"]
    monkeypatch.setattr(backoff, "FIRST_PAUSE", 5.0)
    shared.note_wrong("192.0.2.1")
    for word in ("guess", "boss"):
        assert await say(new("192.0.2.1"), f"auth {word}") == ["error: too many wrong passwords, wait 40 s"]
    assert await say(inside, "auth boss") == ["Current role is CPRAdmin"]
    assert await say(new("192.0.2.2"), "auth boss") == ["Current role is CPRAdmin"]


async def test_words(session: Session) -> None:
    await transcript(
        session,
        [
            ("auth boss", ["Current role is CPRAdmin"]),
            ("echo 1", ["error: echo takes 2 words, try help"]),
            ("echo 1 {a: b c}", ["ADMIN: ['1', '{a: b c}']"]),
            ("echo no 2", ["error: not that"]),
            ("fly", ["error: unknown command, try help"]),
        ],
    )


async def test_what_every_edge_can_do(session: Session, edge: Edge) -> None:
    await transcript(
        session,
        [
            ("auth boss", ["Current role is CPRAdmin"]),
            ("suspend", ["ok, this edge takes no new clients"]),
            ("resume", ["error: cannot listen again: address already in use"]),
            ("save", ["saving server state...", "error: the database is away"]),
        ],
    )
    assert edge.calls == ["suspend"]


@pytest.mark.parametrize("password", ["", "boss", "None"])
async def test_a_role_without_a_password_cannot_be_taken(password: str) -> None:
    session = Session(Passwords(), {}, "", Outage((), ""))
    assert await say(session, f"auth {password}x") == ["Current role is CPRNone"]


async def test_the_log_names_commands_and_never_arguments(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for line in ("echo secret 1", "auth helper", "echo secret 2", "save"):
        await say(session, line)
    logged = [record.getMessage() for record in caplog.records]
    assert logged == [
        "control port: echo without the right to",
        "control port: echo",
        "control port: save without the right to",
    ]
    assert "boss" not in repr(Passwords("boss", "helper"))
