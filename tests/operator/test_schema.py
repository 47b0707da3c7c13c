"""The CRDs: structural, documented, with defaults that hold against their own rules; and k8s/crds says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weir.redis.partitions import is_prefix
from weir_operator.kinds import names
from weir_operator.kinds.definition import crd
from weir_operator.kinds.registry import DEFINITIONS
from weir_operator.kube.defaults import with_defaults
from weir_operator.schema import file_name, main, render

CRD_DIRECTORY = Path(__file__).parents[2] / "k8s/crds"


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from parts(schema[name], f"{path}[]")


def schema_of(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = crd(DEFINITIONS[kind])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_files_are_made_from_the_source(kind: str) -> None:
    assert (CRD_DIRECTORY / file_name(kind)).read_text() == render(kind)


def test_check_names_the_file_that_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0
    stale = tmp_path / file_name(names.SMP_ROUTER)
    stale.write_text("else")
    assert main([str(tmp_path), "--check"]) == 1
    assert str(stale) in capsys.readouterr().err


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_setting_is_described_and_bounded(kind: str) -> None:
    for path, part in parts(schema_of(kind)["properties"]["spec"], "spec"):
        if "x-kubernetes-int-or-string" not in part and not path.endswith("[]"):
            assert part.get("description"), path
        if part.get("type") == "string" and "enum" not in part:
            assert "maxLength" in part, path
        if part.get("type") == "array":
            assert "maxItems" in part, path
        if part.get("type") == "integer":
            assert {"minimum", "maximum"} <= set(part), path


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_kubectl_explain_has_something_to_say(kind: str) -> None:
    """About the kind itself, and about every field of its status."""
    schema = schema_of(kind)
    assert kind in schema["description"]
    for path, part in parts(schema["properties"]["status"], "status"):
        assert part.get("description") or path.endswith("[]"), path


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_defaults_are_written_out_in_full(kind: str) -> None:
    """The server checks a rule on the default as it is written, so a group's default holds those of all its parts."""
    for path, part in parts(DEFINITIONS[kind].spec(), "spec"):
        if part.get("type") == "object" and "default" in part:
            assert part["default"] == with_defaults(part, part["default"]), path


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_rules_name_the_field(kind: str) -> None:
    for path, part in parts(schema_of(kind)):
        for rule in part.get("x-kubernetes-validations", ()):
            assert rule["message"], path
            if "fieldPath" in rule:
                assert rule["fieldPath"].removeprefix(".") in part["properties"], (path, rule["fieldPath"])


def test_names_category_columns_and_subresources() -> None:
    short = {"SMPRouter": "smpr", "NTFRouter": "ntfr", "SMPService": "smps"}
    for kind in DEFINITIONS:
        body = crd(DEFINITIONS[kind])["spec"]
        assert body["group"] == "weir.dev"
        assert body["names"]["shortNames"] == [short[kind]]
        assert body["names"]["categories"] == ["weir"]
        version = body["versions"][0]
        assert "status" in version["subresources"]
        assert ("scale" in version["subresources"]) == (kind != "SMPService")
        columns = [column["name"] for column in version["additionalPrinterColumns"]]
        assert columns[0] == "Ready"
        assert columns[-1] == "Age"
        assert ("Address" in columns) == (kind != "SMPService")
        assert ("Label" in columns) == (kind == "SMPService")


def test_with_defaults_fills_nested_parts_and_changes_nothing_given() -> None:
    given = {"replicas": 7, "redis": {"external": {"url": "redis://x"}}}
    spec = with_defaults(DEFINITIONS["SMPRouter"].spec(), given)
    assert given == {"replicas": 7, "redis": {"external": {"url": "redis://x"}}}
    assert spec["replicas"] == 7
    assert spec["redis"]["durability"] == "everysec"
    assert "embedded" not in spec["redis"]
    assert spec["telemetry"]["serviceMonitor"]["enabled"] is True
    embedded = with_defaults(DEFINITIONS["SMPRouter"].spec(), {"redis": {"embedded": {}}})["redis"]["embedded"]
    assert embedded["storage"] == {"size": "1Gi", "whenDeleted": "Retain"}


@pytest.mark.parametrize("text", ["ntf", "a", "a-1", "a" * 31, "weir", "A", "1a", "-a", "a_b", "a" * 32, "{a}", ""])
def test_a_prefix_is_accepted_where_the_routers_accept_it(text: str) -> None:
    redis = schema_of(names.NTF_ROUTER)["properties"]["spec"]["properties"]["redis"]
    part = redis["properties"]["prefix"]
    matches = re.search(part["pattern"], text) is not None and len(text) <= part["maxLength"]
    rules = [rule["rule"] for rule in redis["x-kubernetes-validations"]]
    assert "!has(self.prefix) || self.prefix != 'weir'" in rules
    assert (matches and text != "weir") == (is_prefix(text) and text != "")
