"""Model and data: what goes in, what comes out, and how sure the model is."""

from __future__ import annotations

from typing import Final

from dashboards.boards.model_stream import STREAM
from dashboards.boards.model_versions import VERSIONS
from dashboards.boards.variables import SERVICE
from dashboards.expr import is_, like, mean, per_minute, pick, quantile, total
from dashboards.spec import Board, Panel, Query, Section

__all__ = ["BOARD"]

_NO_REQUESTS = "No answers in this time."
_NO_EXPORTER = "The exporter is not there."
_P95 = pick("service:model_output_confidence:p95_1h")

_OUT: Final = (
    Panel(
        key="confidence-p95",
        id=1,
        title="Confidence of the answers",
        kind="timeseries",
        unit="percentunit",
        description="P95, median and P5 of the confidence. The P95 falls when the model was swapped for a worse one, "
        "or when "
        "inputs no longer look like the training's; the version below tells the two apart.",
        no_data=_NO_REQUESTS,
        queries=tuple(
            Query(quantile(q, "model_output_confidence"), name)
            for q, name in ((0.95, "P95"), (0.5, "median"), (0.05, "P5"))
        ),
        width=12,
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="confidence-day",
        id=2,
        title="Fall of the confidence's P95 in a day",
        kind="timeseries",
        unit="percentunit",
        description="How far the P95 of an hour's confidences lies below that of the same hour of the day "
        "before. Over the "
        "line: the model was swapped for a worse one, or inputs have changed.",
        no_data="No answers now, none a day ago to compare with, or the recording rules are not evaluated here.",
        queries=(
            Query(
                f"1 - {_P95} / ({_P95} offset 1d)",
                "fall in a day",
                may_be_empty="a stack younger than a day has nothing to compare with",
            ),
        ),
        objective=(("confidence_p95_fall", "fall"),),
        width=12,
    ),
    Panel(
        key="confidence",
        id=3,
        title="All confidences",
        kind="heatmap",
        unit="percentunit",
        description="How many answers had which confidence. Finer near 1, where most are.",
        no_data=_NO_REQUESTS,
        queries=(
            Query(f"sum by (le) (increase({pick('model_output_confidence_bucket')}[$__rate_interval]))", "{{le}}"),
        ),
        width=12,
    ),
    Panel(
        key="labels",
        id=4,
        title="Answers by class",
        kind="timeseries",
        unit="percentunit",
        description="Share of each class among the answers. It moves with a campaign or a new client, and with a "
        "model that "
        "answers otherwise.",
        no_data=_NO_REQUESTS,
        queries=(
            Query(
                f"{total('model_output_confidence_count', by='label')} "
                f"/ on () group_left () ({total('model_output_confidence_count')} > 0)",
                "{{label}}",
            ),
        ),
        width=6,
        stack=True,
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="confidence-by-label",
        id=5,
        title="Median confidence by class",
        kind="timeseries",
        unit="percentunit",
        description="Median confidence of each answered class. One class alone that falls is the data of that class.",
        no_data=_NO_REQUESTS,
        queries=(Query(quantile(0.5, "model_output_confidence", by="label"), "{{label}}"),),
        width=6,
        minimum=0,
        maximum=1,
    ),
)

_IN: Final = (
    Panel(
        key="input-length",
        id=6,
        title="Length of the inputs",
        kind="heatmap",
        unit="short",
        description="Characters of the texts. 100 and 500 part the classes short, medium and long; a new band is a "
        "new client.",
        no_data="No inputs in this time.",
        queries=(
            Query(
                f"sum by (le) (increase({pick('model_input_length_characters_bucket')}[$__rate_interval]))", "{{le}}"
            ),
        ),
    ),
    Panel(
        key="tokens",
        id=7,
        title="Tokens of the inputs",
        kind="heatmap",
        unit="short",
        description="Tokens of the texts: what the model's time grows with.",
        no_data="No inputs in this time.",
        queries=(Query(f"sum by (le) (increase({pick('model_input_tokens_bucket')}[$__rate_interval]))", "{{le}}"),),
    ),
    Panel(
        key="tokens-per-character",
        id=8,
        title="Tokens per character",
        kind="timeseries",
        unit="none",
        description="Mean tokens over mean characters. A jump without a new tokenizer is another kind of text: another "
        "language, full-width letters, markup.",
        no_data="No inputs in this time.",
        queries=(
            Query(
                f"({mean('model_input_tokens')}) / ({mean('model_input_length_characters')})", "tokens per character"
            ),
        ),
        minimum=0,
        decimals=2,
    ),
    Panel(
        key="quality",
        id=9,
        title="Requests kept for their quality",
        kind="timeseries",
        unit="short",
        description="Requests a minute whose trace was kept because the input was of low quality, or the answer of low "
        "confidence. One that was slow or failed is kept for that and not counted here.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(
                per_minute("telemetry_traces_kept_total", like("reason", "low_quality|low_confidence"), by="reason"),
                "{{reason}}",
            ),
        ),
        minimum=0,
    ),
    Panel(
        key="illegal",
        id=10,
        title="Texts that break the contract",
        kind="timeseries",
        unit="percentunit",
        description="Share of requests refused for their text: illegal characters, too long, or not the schema.",
        no_data="No requests in this time.",
        queries=(
            Query(
                f"{total('model_refused_total', like('reason', 'schema|too_long|illegal_characters'), by='reason')} "
                f"/ on () group_left () ({total('model_requests_total')} > 0)",
                "{{reason}}",
            ),
        ),
        alerts=("contract_violations",),
        objective=(("contract_violations", "share"),),
        minimum=0,
    ),
    Panel(
        key="text-quality",
        id=12,
        title="Texts of low quality",
        kind="timeseries",
        unit="short",
        description="Texts a minute that are damaged, full of markup, repeated or empty, by the first reason found; "
        "refused ones count too.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("model_low_quality_input_total", is_("modality", "text"), by="reason"), "{{reason}}"),
        ),
        alerts=("low_quality_text",),
        minimum=0,
    ),
    Panel(
        key="photo-sharpness",
        id=16,
        title="Blurred photos",
        kind="timeseries",
        unit="percentunit",
        description="Share of photos with a sharpness below 50, by kind of device, among those of which it can be "
        "told; a dark photo can be sharp. Over the line: a camera, an app or its compression.",
        no_data="No photos in this time.",
        queries=(
            Query(
                f"{total('model_image_sharpness_score_bucket', is_('le', '50.0'), by='device_type')} "
                f"/ ({total('model_image_sharpness_score_count', by='device_type')} > 0)",
                "{{device_type}}",
                may_be_empty="no photos came",
            ),
        ),
        alerts=("blurred_images",),
        objective=(("blurred_images", "share"),),
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="photo-quality",
        id=17,
        title="Photos of low quality",
        kind="timeseries",
        unit="short",
        description="Photos a minute that are blurred, blank, badly exposed, too small or unreadable, by the first "
        "reason found.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("model_low_quality_input_total", is_("modality", "image"), by="reason"), "{{reason}}"),
        ),
        minimum=0,
    ),
    Panel(
        key="mask-formats",
        id=13,
        title="Masked personal data by format",
        kind="timeseries",
        unit="short",
        description="Texts a minute in which personal data was masked, by kind and by the mask's format. Two formats "
        "at a time: a deploy that reached a part of the workers.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("model_pii_masked_total", by="kind, mask_format"), "{{kind}} in format {{mask_format}}"),
        ),
        alerts=("pii_mask_mismatch",),
        minimum=0,
    ),
    Panel(
        key="dead-letters",
        id=14,
        title="Failed requests that are kept",
        kind="timeseries",
        unit="short",
        description="Requests a minute that failed the contract and were handed over to be kept, and those for which "
        "there was no room.",
        no_data=_NO_EXPORTER,
        queries=(Query(per_minute("model_dead_letters_total", by="result"), "{{result}}"),),
        minimum=0,
    ),
    Panel(
        key="filter-failures",
        id=15,
        title="Failing filters",
        kind="timeseries",
        unit="short",
        description="Requests a minute for which a link of the filter chain failed or was left out. Protocol, schema "
        "and masking answer 503 meanwhile.",
        no_data=_NO_EXPORTER,
        queries=(Query(per_minute("model_filter_failures_total", by="link"), "{{link}}"),),
        minimum=0,
    ),
    Panel(
        key="preprocessing",
        id=18,
        title="Cleaning and chunking, trained and served",
        kind="table",
        unit="short",
        description="Fingerprints of what texts go through in the training of the model and in the service; 1 where "
        "they differ: the model reads forms that it never learnt.",
        no_data="The service is not there, or has no model yet.",
        queries=(Query(f"max by (trained, served) ({pick('data_preprocess_mismatch_state')})", instant=True),),
        columns={"trained": "Trained", "served": "Served", "Value": "Differ"},
        alerts=("preprocess_mismatch",),
    ),
    Panel(
        key="build",
        id=11,
        title="What runs",
        kind="table",
        unit="short",
        description="Build, commit, model and configuration of the running service. Two rows: two versions answer at "
        "once.",
        no_data="The service is not there.",
        queries=(Query(f"max by (version, commit, model, config) ({pick('model_build_info')})", instant=True),),
        columns={"version": "Version", "commit": "Commit", "model": "Model", "config": "Configuration"},
    ),
)

BOARD: Final = Board(
    "model-data",
    "Model and data",
    "What goes into the model, what it answers, and how sure it is.",
    (
        Section("What comes out", _OUT),
        Section("Two versions", VERSIONS),
        Section("What goes in", _IN),
        Section("The stream of queries", STREAM),
    ),
    (SERVICE,),
)
