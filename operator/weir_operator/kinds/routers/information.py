"""The part of a spec that a router's page shows about the router and its operator."""

from __future__ import annotations

from typing import Any

from weir_operator.kube.schema import Schema, choice, group, rule, text

_LINES = (
    ("sourceCode", "Link to the source code of this server (AGPL); needed with any other information."),
    ("usageConditions", "Link to the conditions of use."),
    ("conditionAmendments", "Link to amendments of the conditions."),
    ("operator", "Person or organisation that runs the server."),
    ("website", "Web site of the operator."),
    ("adminSimplex", "Administrator: SimpleX address."),
    ("adminEmail", "Administrator: e-mail."),
    ("adminPgp", "Administrator: link to a PGP key."),
    ("adminPgpFingerprint", "Administrator: fingerprint of the PGP key."),
    ("complaintsSimplex", "Complaints: SimpleX address."),
    ("complaintsEmail", "Complaints: e-mail."),
    ("complaintsPgp", "Complaints: link to a PGP key."),
    ("complaintsPgpFingerprint", "Complaints: fingerprint of the PGP key."),
    ("hosting", "Hosting provider."),
)
_COUNTRIES = (
    ("serverCountry", "Country of the server."),
    ("operatorCountry", "Country of the operator."),
    ("hostingCountry", "Country of the hosting provider."),
)


def information() -> Schema:
    fields: dict[str, Any] = {name: text(doc) for name, doc in _LINES}
    fields |= {name: text(doc + " ISO 3166 code.", pattern="^[A-Z]{2}$", maxLength=2) for name, doc in _COUNTRIES}
    fields["hostingType"] = choice("Kind of hosting.", "virtual", "dedicated", "colocation", "owned")
    others = [name for name in fields if name != "sourceCode"]
    return group(
        "Information on the server page about the server and its operator.",
        rule(
            "has(self.sourceCode) || !(" + " || ".join(f"has(self.{name})" for name in others) + ")",
            "sourceCode is needed when any other information is given",
            ".sourceCode",
        ),
        **fields,
    )
