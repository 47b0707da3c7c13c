"""One retry, on another connection; refused requests are sent again without counting."""

import ssl

import pytest

from tests.notifier.push.http.conftest import StartServer
from weir.bench.standins.server import Answer
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import Forbidden, HttpError, Lost, Origin, Refused, Request, Response
from weir.notifier.push.http.pool import Pool

OK, CLOSE, REFUSE, BUSY = Answer(), Answer(failure="close"), Answer(failure="refuse"), Answer(503)


def is_transient(response: Response) -> bool:
    return response.status == 503


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        ([OK], 200),
        ([CLOSE, OK], 200),
        ([CLOSE, CLOSE, OK], Lost),
        ([BUSY, OK], 200),
        ([BUSY, BUSY, OK], 503),
        ([BUSY, CLOSE, OK], Lost),
        ([CLOSE, BUSY, OK], 503),
        ([REFUSE, REFUSE, REFUSE, OK], 200),
        ([REFUSE, REFUSE, REFUSE, REFUSE, OK], Refused),
        ([REFUSE, REFUSE, REFUSE, CLOSE, OK], 200),
        ([REFUSE, REFUSE, REFUSE, CLOSE, CLOSE, OK], Lost),
        ([Answer(400), OK], 400),
    ],
)
async def test_attempts(answers: list[Answer], result: int | type[HttpError], start: StartServer, pool: Pool) -> None:
    program = iter(answers)
    server = await start(lambda _: next(program))
    origin = Origin("localhost", server.port)
    client, request = Client(pool, 5.0), Request(origin, b"/", [], b"{}")
    if isinstance(result, int):
        assert (await client.post(request, is_transient)).status == result
    else:
        with pytest.raises(result):
            await client.post(request, is_transient)
    used = len(answers) - len(list(program))
    assert server.behaviour.accepted == used  # each attempt has a connection of its own


async def test_what_may_not_be_dialled_is_not_tried_twice() -> None:

    pool = Pool(ssl.create_default_context())
    with pytest.raises(Forbidden):
        await Client(pool, 5.0).post(Request(Origin("127.0.0.1", 443), b"/", [], b""), is_transient)
    await pool.close()
