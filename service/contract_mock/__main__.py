"""`python -m service.contract_mock`: the contract's examples as a server on 127.0.0.1."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.resources import files

import uvicorn
import yaml

from service.contract_mock.server import create_mock

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m service.contract_mock",
        description="Answer by the examples of openapi.yaml: no model, no service.",
        epilog="example: python -m service.contract_mock --port 8090, "
        "then curl -H 'Prefer: code=429' 127.0.0.1:8090/v1/sentiment -d '{}'",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8090, help="port (default: 8090)")
    told = parser.parse_args(arguments)
    document = yaml.safe_load(files("service").joinpath("openapi.yaml").read_text(encoding="utf-8"))
    uvicorn.run(create_mock(document), host=told.host, port=told.port, log_level="warning", access_log=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
