"""A plug-in of pytest: the fixture `privsvm_audit`, which asserts that an audit does not refute an epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from privsvm.auditing.estimators import Audit


@pytest.fixture
def privsvm_audit() -> Callable[..., Audit]:
    """Return a function like `privsvm.audit` that fails the test if the estimator's epsilon is refuted."""

    def not_refuted(*arguments: Any, **options: Any) -> Audit:
        __tracebackhide__ = True
        # Only here: pytest imports plug-ins in every run.
        from privsvm.auditing.estimators import audit

        found = audit(*arguments, **options)
        assert not found.refuted, str(found)
        return found

    return not_refuted
