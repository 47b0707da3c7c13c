"""The names that programs outside this repository may import from `weir.client`."""

from pathlib import Path

import weir
from weir import client


def test_exported_names() -> None:
    assert client.__all__ == [
        "AgentConfig",
        "Answer",
        "ClientError",
        "CommandNotSent",
        "ConnectionClosed",
        "NoServiceSession",
        "NtfAnswer",
        "NtfClient",
        "NtfRequest",
        "ReplyTimeout",
        "Request",
        "ServiceSub",
        "SmpAgent",
        "SmpClient",
        "UnexpectedReply",
        "events",
    ]


def test_every_exported_name_exists_and_classes_are_documented() -> None:
    exported = {name: getattr(client, name) for name in client.__all__}
    assert [name for name, value in exported.items() if isinstance(value, type) and not value.__doc__] == []


def test_errors_have_one_base() -> None:
    errors = [
        client.CommandNotSent,
        client.ConnectionClosed,
        client.NoServiceSession,
        client.ReplyTimeout,
        client.UnexpectedReply,
    ]
    assert all(issubclass(error, client.ClientError) for error in errors)


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(weir.__path__[0]) / "py.typed").exists()
