from __future__ import annotations

from click.testing import CliRunner

from exporters.settings import ExporterSettings
from inferdeck.cli import cli
from inferdeck.setting_help import setting_rows


def test_export_help_names_every_setting_with_its_default() -> None:
    """None is left out, and what the docstring says in several lines comes whole."""
    told = dict(setting_rows(ExporterSettings))

    assert len(ExporterSettings.model_fields) == len(told)
    assert told["INFERDECK_EXPORTER_KEEP_DRIFT (0.1)"].startswith("Random share of the requests answered while a drift")
    assert told["INFERDECK_EXPORTER_KEEP_PER_SECOND (1000.0)"].endswith("10,000 requests a second.)")
    shown = CliRunner().invoke(cli, ["export", "--help"]).output
    assert [name for name in told if name.split()[0] not in shown] == []
