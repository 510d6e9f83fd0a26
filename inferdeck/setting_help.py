"""Settings as a verb's --help shows them: variable, default and meaning, out of the settings' own class."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_settings import BaseSettings

__all__ = ["ExporterCommand", "setting_rows"]

_ENTRY = re.compile(r"^(\w+): (.*)$")


def setting_rows(settings: type[BaseSettings]) -> Iterator[tuple[str, str]]:
    """Yield `VARIABLE (default)` and what it means, for each field that the class's docstring explains.

    Args:
        settings: The class; its docstring has a section `Attributes:`.
    """
    for name, meaning in _explained(settings).items():
        field = settings.model_fields[name]
        choices = getattr(field.validation_alias, "choices", None)
        variable = choices[0] if choices else f"{settings.model_config['env_prefix']}{name}".upper()
        default = field.get_default(call_default_factory=True, validated_data={})
        yield f"{variable} ({'unset' if default is None else default})", meaning


def _explained(settings: type[BaseSettings]) -> dict[str, str]:
    """Return field -> meaning, as the docstring has them."""
    found: dict[str, str] = {}
    name = ""
    for line in inspect.getdoc(settings).partition("Attributes:")[2].splitlines():  # type: ignore[union-attr]
        if match := _ENTRY.match(line.strip()) if line.startswith("    ") and line[4:5] != " " else None:
            name = match[1]
            found[name] = match[2]
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found


class ExporterCommand(click.Command):
    """A verb whose --help ends with the exporter's settings, loaded when it is asked for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the settings."""
        del ctx
        from exporters.settings import ExporterSettings

        with formatter.section("Settings, as variables (default)"):
            # A column of its own for names of that length would leave none for the meaning.
            formatter.write_dl(list(setting_rows(ExporterSettings)), col_max=6)
