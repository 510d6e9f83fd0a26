"""The chain that every request passes before the model: protocol, schema, PII masking, quality.

A refusal ends it. While a link itself fails, protocol, schema and masking answer 503 (what they guard must not pass
unguarded), and quality is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from service.body_limit import Headers, require_json
from service.contract import SentimentRequest, read_request
from service.deadletters.journal import Journal
from service.deadletters.letters import FOLDER, NAME, Failure, TextForm, letter_of
from service.errors import Refusal
from service.filters.audit import AUDIT_FOLDER, Audit, trace_id_of
from service.filters.link import Link
from service.filters.masking import Masked, MaskFormat, mask
from service.recording import RequestRecord
from service.text.character_classes import character_shares
from service.text.contract import MAX_CHARACTERS
from service.text.preprocessing import PREPROCESSING, Preprocessing
from service.text.quality import holds_image, language, quality_reason

__all__ = ["FilterChain", "open_chain"]

# Refusals of what was sent; 429 and 503 say nothing about it.
_ABOUT_THE_REQUEST: Final = (400, 413, 415, 422)
_SCHEMA_REASONS: Final = ("schema", "too_long", "illegal_characters")


class FilterChain:
    """The links, and where failed requests go.

    Args:
        audit: Where the links write down what they did.
        letters: Where failed requests are kept; None: nowhere.
        mask_format: How personal data is masked.
        text_form: What is kept of the text of a failed request.
        preprocessing: Cleans the texts.
    """

    def __init__(
        self,
        audit: Audit,
        letters: Journal | None,
        mask_format: MaskFormat = "1",
        text_form: TextForm = "shape",
        preprocessing: Preprocessing = PREPROCESSING,
    ) -> None:
        self.mask_format: MaskFormat = mask_format
        self._audit, self._letters, self._text_form = audit, letters, text_form
        self._clean = preprocessing.clean
        self.protocol_link: Final = Link("protocol", audit, required=True)
        self.schema_link: Final = Link("schema", audit, required=True)
        self.pii_link: Final = Link("pii", audit, required=True)
        self.quality_link: Final = Link("quality", audit, required=False)

    def protocol(self, headers: Headers, record: RequestRecord) -> None:
        """Refuse what is not JSON by its headers; the body's bounds are kept while it is read.

        Raises:
            Refusal: 415, or 503 while the link fails.
        """
        self.protocol_link.run(_json_only, headers, record, None)

    def text(self, body: bytes, record: RequestRecord) -> tuple[str, str]:
        """Return the text as the model may read it (in the contract, cleaned, masked), and the product's id.

        Args:
            body: The whole body.
            record: The request's row.

        Raises:
            Refusal: 400 or 422 by the contract, or 503 while a link that is required fails.
        """
        with record.stage("sentiment.preprocess") as stage:
            request = self.schema_link.run(_read, body, record, None)
            text = request.text
            record.set(input_length=len(text))
            cleaned = self._clean(text)
            masked = self.pii_link.run(self._mask, cleaned, record, None)
            if masked.counts:
                self._masked(masked, record)
            self._judge(text, cleaned, record)
            stage.set(input_length=len(text), cleaned_length=len(cleaned), language=language(text)[0])
            shares = character_shares(text)
            if shares is not None:
                stage.set(**shares._asdict())
        return masked.text, request.product_id

    def refused(self, refusal: Refusal, body: bytes, record: RequestRecord) -> None:
        """Take note of a refusal: audit, dead letter, and whether it was the text's quality.

        Args:
            refusal: Why.
            body: What came of the body.
            record: The request's row.
        """
        if refusal.status not in _ABOUT_THE_REQUEST:
            return
        of_schema = refusal.reason in _SCHEMA_REASONS and refusal.field != "content-type"
        link = self.schema_link if of_schema else self.protocol_link
        link.note(record, "refused", {"status": refusal.status, "reason": refusal.reason, "field": refusal.field})
        if refusal.reason == "illegal_characters":
            # Damage and markup are what puts such characters there; the row says so beside the refusal.
            text = json.loads(body)["text"][:MAX_CHARACTERS]
            self._judge(text, self._clean(text), record)
        if self._letters is not None:
            failure = Failure(link.name, refusal.status, refusal.reason, refusal.field, trace_id_of(record), body)
            taken = self._letters.put(lambda: letter_of(failure, self._text_form, self.mask_format))
            record.set(dead_letter="handed_over" if taken else "no_room")

    def close(self) -> None:
        """Write what waits, within a few seconds."""
        self._audit.close()
        if self._letters is not None:
            self._letters.close()

    def _mask(self, text: str) -> Masked:
        return mask(text, self.mask_format)

    def _masked(self, masked: Masked, record: RequestRecord) -> None:
        record.set(pii_kinds=",".join(sorted(masked.counts)), pii_mask_format=self.mask_format)
        self.pii_link.note(record, "masked", {"kinds": masked.counts, "mask_format": self.mask_format})

    def _judge(self, text: str, cleaned: str, record: RequestRecord) -> None:
        reason = self.quality_link.run(_quality, (text, cleaned), record, "")
        if reason:
            record.low_quality()
            record.set(quality_modality="text", quality_reason=reason)
            self.quality_link.note(record, "marked", {"reason": reason})


def _json_only(headers: Headers) -> bool:
    require_json(headers)
    return True


def _read(body: bytes) -> SentimentRequest:
    request = read_request(body)
    if holds_image(request.text):
        raise Refusal(422, "illegal_characters", "text holds an image in base64; a review is asked for", "text")
    return request


def _quality(given: tuple[str, str]) -> str:
    return quality_reason(*given) or ""


def open_chain(
    folder: Path | None,
    *,
    letter_bytes: int,
    audit_bytes: int,
    audit_shares: Mapping[str, float],
    mask_format: MaskFormat,
    text_form: TextForm,
    preprocessing: Preprocessing = PREPROCESSING,
) -> FilterChain:
    """Return the chain over a folder; nothing is made in it before there is something to write.

    Args:
        folder: Where dead letters and audit are kept; None: nowhere.
        letter_bytes: Most bytes of dead letters, over all workers.
        audit_bytes: Most bytes of audit, over all workers.
        audit_shares: Link -> share of its doings that is written down.
        mask_format: How personal data is masked.
        text_form: What is kept of the text of a failed request.
        preprocessing: Cleans the texts.
    """
    # The library reads its tables at the first number of a region, which is no work for a request.
    mask("010 62345678, 212 555 0123")
    if folder is None:
        return FilterChain(Audit(None, audit_shares), None, mask_format, text_form, preprocessing)
    letters = Journal(folder / FOLDER, NAME, total_bytes=letter_bytes)
    audit = Audit(Journal(folder / AUDIT_FOLDER, "audit", total_bytes=audit_bytes), audit_shares)
    return FilterChain(audit, letters, mask_format, text_form, preprocessing)
