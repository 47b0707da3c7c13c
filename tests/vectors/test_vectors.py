"""Every golden byte string, both ways; and the program that checks another file."""

import json
from pathlib import Path

import pytest

from tests.vectors.check import PARTS, main, run
from tests.vectors.fixtures import VECTORS, Vectors

_VECTORS = Vectors()


@pytest.mark.parametrize("part", _VECTORS.parts)
def test_part(part: str) -> None:
    problems = [f"{name}: {problem}" for name, problem in run(_VECTORS, part) if problem is not None]
    assert not problems, "\n".join(problems)


def test_every_part_has_checks() -> None:
    assert set(PARTS) == set(_VECTORS.parts)


def _changed(tmp_path: Path, change: object) -> Path:
    data = json.loads(VECTORS.read_text())
    change(data)  # type: ignore[operator]
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(data))
    return path


def test_program_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VECTORS)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(" passed, 0 failed")


@pytest.mark.parametrize(
    ("part", "index", "field"),
    [
        ("smp_commands", 0, "hex"),
        ("smp_responses", 0, "hex"),
        ("ntf_commands", 0, "hex"),
        ("ntf_responses", 0, "hex"),
        ("client_transmissions", 0, "t_encoded_with_auth"),
        ("server_transmissions", 0, "hex"),
        ("handshakes", 1, "hex"),
        ("crypto", 0, "hex"),
        ("keys", 0, "public_spki_der"),
        ("authenticators", 0, "authenticator"),
        ("ids_hash", 1, "hash"),
    ],
)
def test_one_wrong_byte_is_noticed(part: str, index: int, field: str) -> None:
    vectors = Vectors()
    text = vectors.data[part][index][field]
    at = len(text) - 10
    vectors.data[part][index][field] = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :]
    assert len([name for name, problem in run(vectors, part) if problem is not None]) == 1


def test_what_is_not_known_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(data: dict[str, list[dict[str, object]]]) -> None:
        data["brand_new_part"] = [{"name": "x", "hex": "00"}, {"name": "y", "hex": "00"}]
        data["smp_commands"].append({"name": "FROB 1", "hex": "46524f422031", "version": 19})
        data["crypto"].append({"name": "a hash nobody heard of", "hex": "00"})

    assert main([str(_changed(tmp_path, change))]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith(" passed, 4 failed")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nonexistent.json"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("{}", "0 passed, 0 failed"),
        ("[]", "0 passed, 1 failed"),
        ("{", "0 passed, 1 failed"),
        ('{"brand_new_part": 5}', "0 passed, 1 failed"),
        ('{"consts": []}', "0 passed, 1 failed"),
        ('{"smp_commands": {}}', "0 passed, 0 failed"),
        ('{"smp_commands": [5]}', "0 passed, 1 failed"),
        ('{"_about": "only", "crypto": [{"hex": "00"}]}', "0 passed, 1 failed"),
    ],
)
def test_only_what_is_in_the_file_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, last: str
) -> None:
    path = tmp_path / "vectors.json"
    path.write_text(text)
    main([str(path)])
    assert capsys.readouterr().out.splitlines()[-1] == last
