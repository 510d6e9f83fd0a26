from __future__ import annotations

from typing import TYPE_CHECKING

from exporters.lookup import find_session

if TYPE_CHECKING:
    from tests.foreign.conftest import Watched

SESSION = "complaint-0123456789"


def test_three_lines_give_rows_metrics_and_traces(watched: Watched) -> None:
    """A plain FastAPI app with the three lines has its routes, outcomes and stages in rows, metrics, spans, look-up."""
    with watched.serve("uvicorn", "plain_app:app", "--fd", "{fd}") as (client, _):
        statuses = [client.get(path).status_code for path in ("/digits/a1b2", "/digits/none", "/digits/broken", "/no")]
        client.get("/digits/a1", headers={"x-session-id": SESSION})
        table = watched.rows(5)
        [trace] = find_session(watched.ring_dir, SESSION)
        watched.until(lambda: len(watched.spans.of("inferdeck")) >= 5)
        answered = watched.metric("model_requests_total", route="/digits/{text}", outcome="ok")
        in_stage = watched.metric("model_stage_seconds_count", stage="digits.count")
        latencies = watched.metric("model_latency_seconds_count", input_bucket="unknown")

    assert [200, 404, 500, 404] == statuses
    assert ["ok", "refused", "error", "refused", "ok"] == list(table.outcomes)
    assert ["/digits/{text}"] * 3 + ["(unmatched)", "/digits/{text}"] == list(table["route"])
    assert ["", "", "RuntimeError", "", ""] == list(table["error_type"])
    assert [4, 4, 6, 2] == [int(count) for count in table["digits.count/characters"] if count >= 0]
    assert (2, 4, 2) == (answered, in_stage, latencies)
    assert ["GET /digits/{text}", "digits.count"] == [one.name for one in trace.spans if "network" not in one.name]
    assert {"GET /digits/{text}", "digits.count"} <= {span.name for span in watched.spans.of("inferdeck")}
