"""What a person reads when Grafana notifies: the same lines in every channel, each alert with all its links.

The parts without an address are Grafana's templates; the addresses are environment variables, which Grafana expands in
a contact point's settings and nowhere else, so that the lines with a link stand there. Neither holds a lone `$`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PANEL", "TEMPLATES", "feishu_payload", "message", "title"]

_TITLE: Final = (
    '{{ define "inferdeck.title" }}inferdeck: {{ if eq .Status "firing" }}{{ .Alerts.Firing | len }} firing'
    "{{ else }}resolved{{ end }}: {{ .CommonLabels.alertname }} ({{ .CommonLabels.service }}){{ end }}"
)
# Grafana alone knows these two addresses; a template of its own, so that the rest can be rendered by amtool.
PANEL: Final = "{{ if .PanelURL }}{{ .PanelURL }}{{ else }}{{ .DashboardURL }}{{ end }}"
_USE_PANEL: Final = '{{ template "inferdeck.dashboard" . }}'
_DASHBOARD: Final = f'{{{{ define "inferdeck.dashboard" }}}}{PANEL}{{{{ end }}}}'
_LINES: Final = (
    "{{ .Labels.alertname }} {{ .Status }}: {{ .Annotations.summary }}",
    "{{ .Annotations.description }}",
    "Impact: {{ with .Annotations.impact }}{{ . }}{{ else }}see the runbook{{ end }}",
    'Since: {{ .StartsAt.UTC.Format "2006-01-02T15:04:05Z" }}',
    "First: {{ .Annotations.first_step }}",
    "Ask: {{ .Annotations.triage }}",
    f"Dashboard: {_USE_PANEL}",
)
_LINKS: Final = (
    "Runbook: ${INFERDECK_RUNBOOK_URL}{{ .Annotations.runbook_url }}",
    "Traces: ${INFERDECK_JAEGER_URL}/search?service={{ .Labels.service }}&lookback=1h&limit=20",
)


def _define(name: str, between: str) -> str:
    return f'{{{{ define "{name}" }}}}{between.join(_LINES)}{{{{ end }}}}'


# Name -> text of the templates that Grafana is given. Chat programs that read Markdown need an empty line to break one.
TEMPLATES: Final = {
    "inferdeck": "\n".join(
        [_TITLE, _DASHBOARD, _define("inferdeck.alert", "\n"), _define("inferdeck.alert.markdown", "\n\n")]
    )
}


def title() -> str:
    """Return the setting that makes the title."""
    return '{{ template "inferdeck.title" . }}'


def message(*, markdown: bool) -> str:
    """Return the setting that makes the text.

    Args:
        markdown: For a reader that joins lines unless an empty one is between them.
    """
    name, between = ("inferdeck.alert.markdown", "\n\n") if markdown else ("inferdeck.alert", "\n")
    lines = between.join([f'{{{{ template "{name}" . }}}}', *_LINKS])
    return f"{{{{ range .Alerts }}}}{lines}{between}{{{{ end }}}}"


def feishu_payload() -> str:
    """Return the body that a Feishu or Lark bot takes, written by Grafana's JSON functions (Grafana 12 or newer)."""
    # Written out: whether a text within a text may use the templates is documented nowhere.
    lines = "\n".join([*_LINES, *_LINKS]).replace(_USE_PANEL, PANEL)
    text = f'(coll.Dict "tag" "markdown" "content" (tmpl.Inline `{{{{ range .Alerts }}}}{lines}\n{{{{ end }}}}` .))'
    head = '(coll.Dict "tag" "plain_text" "content" (tmpl.Exec "inferdeck.title" .))'
    card = f'(coll.Dict "header" (coll.Dict "title" {head} "template" "red") "elements" (coll.Slice {text}))'
    return f'{{{{ coll.Dict "msg_type" "interactive" "card" {card} | data.ToJSON }}}}'
