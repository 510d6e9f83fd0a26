from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case

if TYPE_CHECKING:
    from tests.hard.conftest import Service

CONTRACT = schemathesis.openapi.from_path(Path(__file__).resolve().parents[2] / "service" / "openapi.yaml")
CONTRACT.config.seed = 20240117


@CONTRACT.parametrize()
@settings(max_examples=80, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_keeps_the_contract(case: Case[Any], service: Service) -> None:
    """Whatever schemathesis makes of the contract, valid or not, gets an answer that the contract knows."""
    case.call_and_validate(base_url=service.url)
