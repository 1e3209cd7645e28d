"""Releases as drafts of records for the public registry of deployments of differential privacy.

The registry's schema is tests/release/deployments-schema.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privsvm.release.documents.ledger import Entry, cost_words, total_of

# Stands for facts that no ledger has.
UNKNOWN = "to be filled in"


def deployments(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Make a record of each release of a ledger, one by one, as JSON values that the registry's schema accepts.

    `UNKNOWN` stands where people must write something.
    """
    return [
        _deployment(entry, [other for other in entries if other.account == entry.account])
        for entry in entries
        if entry.model
    ]


def _deployment(entry: Entry, same_data: Sequence[Entry]) -> dict[str, Any]:
    guarantee, total = entry.guarantee, total_of(entry.account, same_data)
    assert total is not None
    whom, unprotected = "one row", "Names, bounds and categories of the columns, the classes, and the parameters."
    if entry.unit == "person":
        whom = f"one person with all their rows, of which {entry.rows} count"
    change = "added or removed"
    if guarantee.neighbours == "replace_one":
        change, unprotected = "replaced by another", f"{unprotected} The number of rows."
    together = "This is the only release of the data set."
    if total.releases > 1:
        together = f"{total.releases} releases of the data set cost {cost_words(total)}, together ({total.accountant})."
    return {
        "url_slug": f"{entry.account.lower()}-{entry.number}",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": f"Private classifier of {entry.account}",
                "data_curators": [UNKNOWN],
                "intended_use": UNKNOWN,
                "data_product_type": "Machine learning model",
                "data_product_region": UNKNOWN,
                "description": f"A classifier that was trained with PrivSVM; digest of the model: {entry.model}.",
                "publication_date": entry.date,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if entry.delta == 0 else "Approximate DP",
                "unprotected_quantities": unprotected,
            },
            "privacy_loss": {
                "privacy_unit": entry.unit,
                "privacy_unit_details": f"Two tables are adjacent if they differ in {whom}, {change}.",
                "privacy_parameters": {"epsilon": entry.epsilon, "delta": entry.delta},
                "privacy_parameters_details": f"Computed by: {guarantee.accountant}. {cost_words(entry)}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release" if total.releases == 1 else "Many releases",
                "release_type_details": together,
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Predictions are computed from the released model alone.",
                "composition": f"Everything that was computed from the rows for this model is in epsilon. {together}",
            },
            "implementation": {
                "mechanisms": f"{guarantee.mechanism}. Proof: {guarantee.reference}. The noise is exact, so that "
                "round-off reveals nothing, and comes from the operating system. Training time is not covered.",
            },
            "administrative": {
                "notes": f"Entry {entry.number} of the ledger, {entry.head}.",
                "registry_authors": [UNKNOWN],
            },
        },
    }
