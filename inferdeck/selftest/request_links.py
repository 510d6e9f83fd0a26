"""The request: answered by the service, a row, counted by the exporter, scraped by Prometheus, found by its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from inferdeck.http_get import Unreachable, get, get_json, post_json
from inferdeck.selftest.link import Broken, LinkAbsent, Moment
from inferdeck.selftest.places import Places

__all__ = ["MARK", "RequestLinks"]

# what tells the request from others: the start of its session id, and its client release
MARK = "inferdeck-selftest"
# a real request of the contract; its text is stored nowhere, as no text is
BODY = {"text": "A self test of the service, this book is great.", "product_id": "ST00000000"}
ANSWER_SECONDS = 5.0
ROW_SECONDS = 2.0
EXPORTER_SECONDS = 5.0
COUNTER = "model_requests_total"
COUNT_QUERY = f'sum({COUNTER}{{job="inferdeck-exporter"}})'


@dataclass
class RequestLinks:
    """One marked request and what became of it.

    Attributes:
        places: Where the parts are.
        session_id: `MARK` and twelve random digits.
        moment: Clocks.
        scrape_limit_seconds: How long Prometheus may take to scrape.
    """

    places: Places
    session_id: str
    moment: Moment = field(default_factory=Moment)
    scrape_limit_seconds: float = 15.0
    trace: dict[str, Any] | None = None
    _answered: bool = False
    _before: Mapping[str, float] | Unreachable | None = None
    _counted: float | None = None

    def service(self) -> str:
        """Send the request; the exporter's figures are read first, so that they can be seen to move."""
        url = self.places.url("service")
        if "exporter" not in self.places.left_out:
            try:
                self._before = self._figures()
            except Unreachable as error:
                self._before = error
        headers = {"X-Session-Id": self.session_id, "X-Client-Release": MARK, "User-Agent": MARK}
        try:
            status, body = post_json(f"{url}/v1/sentiment", BODY, ANSWER_SECONDS, headers)
        except Unreachable as error:
            raise self.places.silent("service", error) from error
        if status != 200:
            raise Broken(
                f"it answers {status}: {body[:200].decode(errors='replace')}", "`inferdeck doctor`, then its log"
            )
        self._answered = True
        return f"answered 200; session {self.session_id}, an ordinary request that every figure counts"

    def row(self) -> str:
        """Find the request's row by its session."""
        self._need_answer()
        seen = self.moment.wait_for(self._find, ROW_SECONDS, 0.02)
        if seen is None:
            raise Broken(
                f"no row of the session in {self.places.ring_dir}",
                "is the recorder attached, and the folder the service's? `inferdeck doctor`; INFERDECK_RING_DIR",
            )
        return seen

    def exporter(self) -> str:
        """See that the exporter counted the row."""
        self.places.url("exporter")
        self._need_answer()
        before = self._before
        if isinstance(before, Unreachable) or before is None:
            raise self.places.silent("exporter", before or Unreachable("it was not asked"))
        goal: list[float] = []

        def counted() -> str | None:
            now = self._figures()
            # the row was there before the first look: it is among what was read or unread then
            goal.append(now["read"] + now["unread"])
            if now["requests"] > before["requests"] and now["read"] >= goal[0]:
                self._counted = now["requests"]
                return f"{COUNTER} went from {before['requests']:.0f} to {now['requests']:.0f}"
            return None

        try:
            seen = self.moment.wait_for(counted, EXPORTER_SECONDS, 0.2)
        except Unreachable as error:
            raise self.places.silent("exporter", error) from error
        if seen is None:
            raise Broken(f"{COUNTER} does not move", "does it read the same folder? GET its /healthz; its log")
        return seen

    def prometheus(self) -> str:
        """See that Prometheus has the counter as the exporter showed it."""
        url = self.places.url("prometheus")
        if self._counted is None:
            raise LinkAbsent("not looked at: the exporter counted nothing that could be scraped", "")
        goal = self._counted

        def scraped() -> str | None:
            answer = get_json(f"{url}/api/v1/query?query={quote(COUNT_QUERY)}", 2.0)
            found = answer["data"]["result"]
            # an empty answer is a Prometheus that has not scraped yet
            value = float(found[0]["value"][1]) if found else 0.0
            return f"has {value:.0f} requests, the marked one among them" if value >= goal else None

        try:
            seen = self.moment.wait_for(scraped, self.scrape_limit_seconds, 0.5)
        except Unreachable as error:
            raise self.places.silent("prometheus", error) from error
        if seen is None:
            raise Broken(
                f"not scraped within {self.scrape_limit_seconds:.0f} s: {COUNT_QUERY} stays below {goal:.0f}",
                f"look at {url}/targets",
            )
        return seen

    def look_up(self) -> str:
        """Print the request's trace: what a person would ask for."""
        from inferdeck.look_up import Query
        from inferdeck.look_up import look_up as find

        # the same code as `inferdeck trace`: what a person would see
        self._need_answer()
        if not self.places.ring_dir.is_dir():
            raise Broken(f"there is no folder {self.places.ring_dir}", "set INFERDECK_RING_DIR")
        traces = find(Query(session=self.session_id), self.places.ring_dir)["traces"]
        if not traces:
            raise Broken("the session is not found", "`inferdeck doctor`; INFERDECK_RING_DIR")
        self.trace = traces[-1]
        stages = len(self.trace["spans"]) - 1
        if stages < 1:
            raise Broken(f"trace {self.trace['trace_id']} has no stages", "are the service's stages declared?")
        return f"trace {self.trace['trace_id']} with {stages} stages"

    def _need_answer(self) -> None:
        if not self._answered:
            raise LinkAbsent("not looked at: the service did not answer the request", "")

    def _find(self) -> str | None:
        from exporters.lookup import find_session

        # a request is shown as unfinished until its row is committed, microseconds after its answer
        views = [view for view in find_session(self.places.ring_dir, self.session_id) if view.status != "unfinished"]
        return f"trace {views[-1].trace_id}, {views[-1].duration_s * 1e3:.1f} ms" if views else None

    def _figures(self) -> dict[str, float]:
        """Return requests counted, rows read and rows unread, as the exporter shows them."""
        from prometheus_client.parser import text_string_to_metric_families

        status, body = get(f"{self.places.url('exporter')}/metrics", 3.0, {"Accept": "text/plain"})
        if status != 200:
            raise Unreachable(f"/metrics answers {status}")
        wanted = {COUNTER: "requests", "telemetry_rows_read_total": "read", "telemetry_ring_unread_rows": "unread"}
        found = dict.fromkeys(wanted.values(), 0.0)
        for family in text_string_to_metric_families(body.decode()):
            for sample in family.samples:
                if sample.name in wanted:
                    found[wanted[sample.name]] += sample.value
        return found
