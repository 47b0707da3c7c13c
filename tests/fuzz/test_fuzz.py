"""The harnesses over their seeds, over what crashed once, and for a moment over mutated seeds."""

import random
from pathlib import Path

import pytest

from tests.fuzz.harnesses import HARNESSES
from tests.fuzz.mutation import mutate
from tests.fuzz.run import REGRESSIONS, main
from tests.fuzz.seeds import CORPUS, LARGEST, seeds
from tests.vectors.fixtures import Vectors

_MUTATIONS = 1500


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", HARNESSES)
def test_seeds(name: str) -> None:
    corpus = _files(CORPUS / name)
    assert corpus, "every harness has seeds"
    for path in corpus:
        HARNESSES[name](path.read_bytes())


@pytest.mark.parametrize("name", HARNESSES)
def test_regressions(name: str) -> None:
    for path in _files(REGRESSIONS / name):
        HARNESSES[name](path.read_bytes())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HARNESSES)
def test_mutated_seeds(name: str) -> None:
    rng = random.Random(name)
    corpus = [path.read_bytes() for path in _files(CORPUS / name)]
    for _ in range(_MUTATIONS if name != "certificate_chain" else _MUTATIONS // 5):
        data = mutate(rng.choice(corpus), rng)
        try:
            HARNESSES[name](data)
        except BaseException as error:
            raise AssertionError(f"{name} with {data.hex()}") from error


def test_seeds_are_the_vectors() -> None:
    """The committed files are what `python -m tests.fuzz.seeds` makes."""
    for name, values in seeds(Vectors()).items():
        committed = {path.read_bytes() for path in _files(CORPUS / name)}
        assert committed == {value for value in values if len(value) <= LARGEST}, name


def test_runner_knows_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--seconds", "1", "nope"])
    assert "no harness is called nope" in capsys.readouterr().err


def test_runner(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "1", "--jobs", "1", "service_response"]) == 0
    assert capsys.readouterr().out.startswith("ok     service_response: ")
