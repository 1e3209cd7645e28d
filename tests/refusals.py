"""What users read where something is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from privsvm.errors import PrivSVMError


def refusal(call: Callable[..., Any], *arguments: Any, error: type[Exception] = PrivSVMError, **options: Any) -> str:
    """Return the message with which a call is refused; it is one line."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
