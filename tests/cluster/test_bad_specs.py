"""Bad specs: each is refused at admission, with a message that names the field."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.dynamic.exceptions import UnprocessibleEntityError

from tests.cluster.conftest import router
from tests.cluster.harness import Kube

FP = "A" * 43 + "="
_SMP: dict[str, tuple[dict[str, Any], str, str]] = {
    "negative replicas": ({"replicas": -1}, "spec.replicas", "greater than or equal to 0"),
    "replicas as text": ({"replicas": "two"}, "spec.replicas", "integer"),
    "port out of range": ({"ports": {"smp": 70000}}, "spec.ports.smp", "less than or equal to 65535"),
    "one port for both": ({"ports": {"smp": 8000}}, "spec.ports.http", "must differ"),
    "no host name": ({"hosts": ["not a host"]}, "spec.hosts[0]", "should match"),
    "a host twice": ({"hosts": ["a.example", "a.example"]}, "spec.hosts[1]", "Duplicate value"),
    "min above max": (
        {"autoscaling": {"minReplicas": 5, "maxReplicas": 2}},
        "spec.autoscaling.minReplicas",
        "must not be more than maxReplicas",
    ),
    "autoscaling without max": ({"autoscaling": {"minReplicas": 2}}, "spec.autoscaling.maxReplicas", "Required value"),
    "unknown metric": (
        {"autoscaling": {"maxReplicas": 2, "metric": "Moon"}},
        "spec.autoscaling.metric",
        'supported values: "CPU", "Subscriptions"',
    ),
    "renewal before issue": (
        {"certificate": {"lifetimeDays": 10, "renewBeforeDays": 10}},
        "spec.certificate.renewBeforeDays",
        "must be less than lifetimeDays",
    ),
    "unknown key type": ({"identity": {"keyType": "RSA"}}, "spec.identity.keyType", '"Ed25519", "Ed448"'),
    "basic auth without a Secret": ({"basicAuth": {"key": "x"}}, "spec.basicAuth.name", "Required value"),
    "no quota": ({"limits": {"quota": 0}}, "spec.limits.quota", "greater than or equal to 1"),
    "no duration": ({"limits": {"messageTTL": "three weeks"}}, "spec.limits.messageTTL", "should match"),
    "two Redis": (
        {"redis": {"embedded": {}, "external": {"url": "redis://r"}}},
        "spec.redis.embedded",
        "only one of embedded and external",
    ),
    "replicated without replicas": (
        {"redis": {"durability": "replicated"}},
        "spec.redis.durability",
        "set redis.external",
    ),
    "no Redis URL": ({"redis": {"external": {"url": "http://r"}}}, "spec.redis.external.url", "should match"),
    "neither URL nor Secret": ({"redis": {"external": {}}}, "spec.redis.external.url", "exactly one of"),
    "unknown durability": ({"redis": {"durability": "maybe"}}, "spec.redis.durability", '"everysec", "fsync"'),
    "node port without NodePort": ({"exposure": {"nodePort": 30000}}, "spec.exposure.nodePort", "needs type NodePort"),
    "host port without HostPort": ({"exposure": {"hostPort": 443}}, "spec.exposure.hostPort", "needs type HostPort"),
    "source ranges without a load balancer": (
        {"exposure": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}},
        "spec.exposure.loadBalancerSourceRanges",
        "needs type LoadBalancer",
    ),
    "information without source code": (
        {"information": {"operator": "me"}},
        "spec.information.sourceCode",
        "is needed when any other information is given",
    ),
    "no country": (
        {"information": {"sourceCode": "https://x", "serverCountry": "xx"}},
        "spec.information.serverCountry",
        "should match",
    ),
    "no quantity": ({"resources": {"requests": {"memory": "much"}}}, "spec.resources.requests.memory", "should match"),
    "ratio above 1": (
        {"telemetry": {"traces": {"endpoint": "http://c:4318", "sampleRatio": 2}}},
        "spec.telemetry.traces.sampleRatio",
        "less than or equal to 1",
    ),
    "no drain rate": ({"rollout": {"drainRate": 0}}, "spec.rollout.drainRate", "greater than or equal to 1"),
    "unknown maintenance": ({"maintenance": {"edges": "Asleep"}}, "spec.maintenance.edges", '"Running", "Stopped"'),
}
_SERVICE: dict[str, tuple[dict[str, Any], str, str]] = {
    "no router": ({"role": "Messaging", "fingerprints": [FP]}, "spec.router", "Required value"),
    "no role": ({"router": "r", "role": "King", "fingerprints": [FP]}, "spec.role", '"Messaging", "Notifier"'),
    "no identity": ({"router": "r", "role": "Messaging"}, "spec.fingerprints", "must name at least one"),
    "no fingerprint": (
        {"router": "r", "role": "Messaging", "fingerprints": ["x"]},
        "spec.fingerprints[0]",
        "should match",
    ),
    "three fingerprints": (
        {"router": "r", "role": "Messaging", "fingerprints": [FP, "B" + FP[1:], "C" + FP[1:]]},
        "spec.fingerprints",
        "must have at most 2 items",
    ),
}
_APNS = {"secretName": "s", "keyId": "K" * 10, "teamId": "T" * 10, "topic": "org.example.app"}
_NTF: dict[str, tuple[dict[str, Any], str, str]] = {
    **{
        f"no {field}": (
            {"push": {"apns": {key: value for key, value in _APNS.items() if key != field}}},
            f"spec.push.apns.{field}",
            "Required value",
        )
        for field in _APNS
    },
    "no key id": ({"push": {"apns": {**_APNS, "keyId": "x"}}}, "spec.push.apns.keyId", "should match"),
    "no host of APNs": ({"push": {"apns": {**_APNS, "host": "a b"}}}, "spec.push.apns.host", "should match"),
    "no subject": ({"push": {"webPush": {"subject": "me"}}}, "spec.push.webPush.subject", "should match"),
    "unknown host mode": ({"subscriber": {"hostMode": "Tor"}}, "spec.subscriber.hostMode", '"Public", "Onion"'),
    "always through no proxy": (
        {"subscriber": {"socksMode": "Always"}},
        "spec.subscriber.socksProxy",
        "needs socksProxy",
    ),
    "one port for both": ({"ports": {"ntf": 8000}}, "spec.ports.http", "must differ"),
    "no prefix": ({"redis": {"prefix": "{tag}"}}, "spec.redis.prefix", "should match"),
}
CASES = [
    pytest.param(kind, *case, id=f"{kind}: {what}")
    for kind, table in (("SMPRouter", _SMP), ("SMPService", _SERVICE), ("NTFRouter", _NTF))
    for what, case in table.items()
]


@pytest.mark.parametrize(("kind", "spec", "field", "words"), CASES)
def test_refused_with_the_fields_name(kube: Kube, kind: str, spec: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(UnprocessibleEntityError) as refusal:
        kube.create(router("bad", kind, **spec), "default")
    message = refusal.value.summary()
    assert f"{field}: " in message
    assert words.replace('"', '\\"') in message or words in message


def test_a_name_that_children_cannot_bear_is_refused(kube: Kube) -> None:
    for name in ("1st", "has.dots", "n" * 41):
        with pytest.raises(UnprocessibleEntityError, match=r"metadata\.name must be a DNS label"):
            kube.create(router(name), "default")


def test_what_cannot_be_changed_is_refused(kube: Kube) -> None:
    spec = {"redis": {"embedded": {"storage": {"size": "1Gi"}}}}
    kube.create(router("fixed", **spec), "default")
    service = {"router": "fixed", "role": "Messaging", "fingerprints": [FP]}
    kube.create(router("fixed", "SMPService", **service), "default")
    kube.create(router("fixed", "NTFRouter"), "default")
    try:
        for kind, patch, words in (
            ("SMPRouter", {"redis": {"embedded": {"storage": {"size": "2Gi"}}}}, "spec.redis.embedded.storage"),
            ("SMPRouter", {"redis": {"prefix": "late"}}, "spec.redis.prefix"),
            ("NTFRouter", {"redis": {"prefix": "other"}}, "spec.redis.prefix"),
            ("SMPService", {"role": "Notifier"}, "spec.role"),
            ("SMPService", {"router": "other"}, "spec.router"),
        ):
            with pytest.raises(UnprocessibleEntityError) as refusal:
                kube.merge(kind, "fixed", "default", {"spec": patch})
            assert f"{words}: " in refusal.value.summary()
            assert "cannot be changed" in refusal.value.summary()
    finally:
        kube.delete("SMPService", "fixed", "default")
        kube.delete("NTFRouter", "fixed", "default")
        kube.delete("SMPRouter", "fixed", "default")


def test_every_kind_is_in_the_category_and_has_its_short_name(kube: Kube) -> None:
    found = kube.raw("/apis/weir.dev/v1alpha1")["resources"]
    kinds = {one["kind"]: one for one in found if "/" not in one["name"]}
    assert {kind: one["shortNames"] for kind, one in kinds.items()} == {
        "SMPRouter": ["smpr"],
        "NTFRouter": ["ntfr"],
        "SMPService": ["smps"],
    }
    assert all(one["categories"] == ["weir"] for one in kinds.values())
    subresources = {one["name"] for one in found if "/" in one["name"]}
    assert {"smprouters/status", "smprouters/scale", "ntfrouters/scale", "smpservices/status"} <= subresources
