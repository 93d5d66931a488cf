"""What the description of the API says of all of its addresses."""

from __future__ import annotations

from typing import Any

from fastapi import Depends
from fastapi.security import HTTPBearer

from drivefeed.web.problems import PROBLEM_TYPE
from drivefeed.web.shapes import ProblemShape

_PROBLEM = {"content": {PROBLEM_TYPE: {"schema": ProblemShape.model_json_schema()}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"description": "A parameter says nothing.", **_PROBLEM},
    401: {"description": "No valid API key came along.", **_PROBLEM},
    404: {"description": "There is no such thing in the key's organization.", **_PROBLEM},
    429: {"description": "Too many wrong keys came from this address.", **_PROBLEM},
    503: {"description": "A part does not answer.", **_PROBLEM},
}


def bearer() -> Any:
    """Return the dependency that describes how one signs in."""
    return Depends(HTTPBearer(auto_error=False, description="An API key: df_…"))
