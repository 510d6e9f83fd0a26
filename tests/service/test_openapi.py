"""The contract's file is valid, agrees with itself, and with the app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from fastapi import FastAPI
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import TypeAdapter
from starlette.routing import Route

from service.app import create_app
from service.contract import Sentiment, SentimentAnswer, SentimentRequest
from service.errors import REASONS, Field
from service.predict import Degraded
from service.text.contract import ALLOWED_PATTERN, MAX_CHARACTERS


def test_is_valid_openapi_3_1(contract: dict[str, Any]) -> None:
    """The file is what tools expect."""
    assert list(OpenAPIV31SpecValidator(contract).iter_errors()) == []
    assert contract["openapi"].startswith("3.1")


def test_paths_and_methods_are_those_of_the_app(contract: dict[str, Any], make_settings: Any) -> None:
    """Nothing is served that is not in the contract, and the other way round."""
    app: FastAPI = create_app(make_settings())
    routes = [route for route in app.routes if isinstance(route, Route)]
    assert len(routes) == len(app.routes)
    served = {(route.path, method.lower()) for route in routes for method in (route.methods or set()) - {"HEAD"}}
    told = {(path, method) for path, item in contract["paths"].items() for method in item}
    assert served == told


def test_statuses_are_those_that_the_tests_provoke(contract: dict[str, Any]) -> None:
    """Each documented status is produced in test_endpoint; a new one needs a test there."""
    told = set(contract["paths"]["/v1/sentiment"]["post"]["responses"])
    assert told == {"200", "202", "400", "404", "405", "408", "413", "415", "422", "429", "500", "503"}


def test_rules_are_written_once(contract: dict[str, Any]) -> None:
    """Pattern, length, reasons, fields and labels in the file are those of the code."""
    schemas = contract["components"]["schemas"]
    text = schemas["SentimentRequest"]["properties"]["text"]
    error = schemas["Error"]["properties"]["error"]["properties"]
    answer = schemas["SentimentAnswer"]["properties"]
    headers = contract["paths"]["/v1/sentiment"]["post"]["responses"]["200"]["headers"]
    assert (text["pattern"], text["minLength"], text["maxLength"]) == (ALLOWED_PATTERN, 1, MAX_CHARACTERS)
    assert tuple(error["reason"]["enum"]) == REASONS
    assert tuple(error["field"]["enum"]) == (*get_args(Field), None)
    assert tuple(answer["sentiment"]["enum"]) == get_args(Sentiment)
    assert tuple(headers["X-Degraded"]["schema"]["enum"]) == get_args(Degraded)


def test_models_have_the_fields_of_the_schemas(contract: dict[str, Any]) -> None:
    """Names, need and product_id's pattern agree between pydantic and the file."""
    schemas = contract["components"]["schemas"]
    for model, name in ((SentimentRequest, "SentimentRequest"), (SentimentAnswer, "SentimentAnswer")):
        own = TypeAdapter(model).json_schema()
        assert set(own["properties"]) == set(schemas[name]["properties"])
        assert set(own["required"]) == set(schemas[name]["required"])
        assert own["additionalProperties"] is False
    product_id = TypeAdapter(SentimentRequest).json_schema()["properties"]["product_id"]
    assert product_id["pattern"] == schemas["SentimentRequest"]["properties"]["product_id"]["pattern"]


def examples(contract: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each example of the file with the schema that it claims."""
    operation = contract["paths"]["/v1/sentiment"]["post"]
    bodies = [operation["requestBody"], *operation["responses"].values()]
    for content in (body["content"]["application/json"] for body in bodies):
        name = content["schema"]["$ref"].rpartition("/")[2]
        if "example" in content:
            yield name, content["example"]
        for example in content.get("examples", {}).values():
            yield name, example["value"]


def test_examples_fit_their_schemas(contract: dict[str, Any], judge: Any) -> None:
    """Examples are what people copy."""
    found = list(examples(contract))
    assert len(found) >= 14
    for name, value in found:
        judge.validate(name, value)


@pytest.mark.anyio
async def test_request_examples_are_judged(contract: dict[str, Any], client: Any) -> None:
    """The examples of requests get 200 from the running app."""
    for name, value in examples(contract):
        if name == "SentimentRequest":
            assert (await client.post("/v1/sentiment", json=value)).status_code == 200
