"""The part of a spec that says where a router's data is."""

from __future__ import annotations

from weir_operator.kinds.routers.schema import QUANTITY, resources, secret_key
from weir_operator.kube.schema import Schema, choice, duration, group, integer, names, rule, text


def redis(content: str, prefix: str | None) -> Schema:
    """`content` says what is stored, `prefix` is the default of the prefix."""
    embedded = group(
        "One Redis of the router's own, with an append-only file on a volume: for trials and small servers.",
        default=False,
        storage=group(
            "The volume.",
            rule(
                "self.size == oldSelf.size && has(self.storageClassName) == has(oldSelf.storageClassName)"
                " && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
                "storage cannot be changed: enlarge the PersistentVolumeClaim itself, or move to redis.external",
            ),
            size=text("Size of the volume.", pattern=QUANTITY, maxLength=16, default="1Gi"),
            storageClassName=names("StorageClass of the volume. Unset: the cluster's default."),
            whenDeleted=choice(
                f"Whether the volume, with {content}, is kept when the router is deleted.",
                "Retain",
                "Delete",
                default="Retain",
            ),
        ),
        resources=resources("100m", "128Mi"),
    )
    external = group(
        "Your own Redis, Sentinel or Cluster.",
        rule("has(self.url) != has(self.urlSecret)", "exactly one of url and urlSecret must be set", ".url"),
        default=False,
        url=text(
            "redis://host:port/db, rediss://…, redis+sentinel://h1,h2/NAME or redis+cluster://h1,h2.",
            pattern=r"^(rediss?|rediss?\+sentinel|rediss?\+cluster)://[^\s]+$",
        ),
        urlSecret=secret_key("A Secret that holds the URL.", "url"),
        passwordSecret=secret_key("A Secret that holds the password, when it is not in the URL.", "password"),
    )
    return group(
        f"The Redis with {content}. Neither embedded nor external: embedded with its defaults.",
        rule(
            "!(has(self.embedded) && has(self.external))",
            "only one of embedded and external may be set",
            ".embedded",
        ),
        rule(
            "self.durability != 'replicated' || has(self.external)",
            "durability replicated needs replicas, which an embedded Redis does not have: set redis.external",
            ".durability",
        ),
        rule(
            "has(oldSelf.embedded) || has(oldSelf.external) || !has(self.embedded)"
            " || (self.embedded.storage.size == '1Gi' && !has(self.embedded.storage.storageClassName))",
            "storage cannot be changed: the volume was made with the defaults",
            ".embedded",
        ),
        rule(
            "has(self.prefix) == has(oldSelf.prefix) && (!has(self.prefix) || self.prefix == oldSelf.prefix)",
            "prefix cannot be changed: the router would no longer find its data",
            ".prefix",
        ),
        rule("!has(self.prefix) || self.prefix != 'weir'", "prefix weir is that of routers without one", ".prefix"),
        embedded=embedded,
        external=external,
        prefix=text(
            "Prefix of all keys and channels: a letter, then letters, digits and hyphens. Several routers can share one"
            " Redis if each has another prefix.",
            pattern="^[a-z][-a-z0-9]*$",
            maxLength=31,
            minLength=1,
            **({} if prefix is None else {"default": prefix}),
        ),
        durability=choice(
            "The promise of an OK: everysec (written, on disk within a second), fsync (on disk), replicated (on"
            " `replicas` replicas).",
            "everysec",
            "fsync",
            "replicated",
            default="everysec",
        ),
        replicas=integer("Replicas that must confirm a write, with durability replicated.", 1, 16, default=1),
        replicaTimeout=duration("Time that a write waits for the replicas.", "1s"),
    )
