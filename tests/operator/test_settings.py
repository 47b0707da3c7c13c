"""Options of `weir operator` and their environment variables."""

from __future__ import annotations

import pytest

from weir_operator.settings import parse


def test_defaults() -> None:
    settings = parse([], {})
    assert settings.namespaces == ()
    assert settings.defaults.image == "weir:dev"
    assert settings.http_port == 8080
    assert settings.lease_seconds == 15


def test_environment_as_the_chart_sets_it() -> None:
    settings = parse(
        [],
        {
            "WEIR_OPERATOR_NAMESPACES": "a, b,",
            "WEIR_OPERATOR_NAMESPACE": "own",
            "WEIR_OPERATOR_POD": "op-1",
            "WEIR_OPERATOR_IMAGE": "weir:1",
            "WEIR_OPERATOR_IMAGE_PULL_POLICY": "Always",
            "WEIR_OPERATOR_IMAGE_PULL_SECRETS": "x,y",
            "WEIR_OPERATOR_HTTP_PORT": "9000",
            "WEIR_LOG_LEVEL": "debug",
        },
    )
    assert settings.namespaces == ("a", "b")
    assert settings.own_namespace == "own"
    assert settings.identity.startswith("op-1_")
    assert (settings.defaults.image, settings.defaults.pull_policy) == ("weir:1", "Always")
    assert settings.defaults.pull_secrets == ("x", "y")
    assert (settings.http_port, settings.log_level) == (9000, "debug")


@pytest.mark.parametrize(
    ("name", "value"), [("HTTP_PORT", "99999"), ("WORKERS", "0"), ("OBSERVE_SECONDS", "-1"), ("LEASE_SECONDS", "0")]
)
def test_a_number_out_of_range_is_one_line(name: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([], {f"WEIR_OPERATOR_{name}": value})
    said = capsys.readouterr().err
    assert f"'{value}': expected a number from " in said and said.count("\n") == 1


def test_options_win_and_two_processes_are_two_replicas() -> None:
    one, other = (parse(["--image", "mine", "--pod", "p"], {"WEIR_OPERATOR_IMAGE": "theirs"}) for _ in range(2))
    assert one.defaults.image == "mine"
    assert one.identity != other.identity
