"""What `inferdeck check` looks at in the compose stack: what would fail, or be unsafe, at its start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from inferdeck.checks import Check
from inferdeck.stack.compose.configuration import generated_files
from inferdeck.stack.compose.document import ComposeFile, fill_in, load_compose_file
from inferdeck.stack.compose.project import COMPOSE_FILE, NOTIFIERS, PORTS

__all__ = ["check_compose"]

# What may lack a health check, and why.
WITHOUT_HEALTH_CHECK = {"collector": "its image holds no program to run one"}
_SECRET = re.compile(r"TOKEN|PASSWORD|SECRET|API_KEY")
_PINNED = re.compile(r"[^:@\s]+(?::\d+/[^:@\s]+)?:(?!latest$)[A-Za-z0-9._-]+(@sha256:[0-9a-f]{64})?")
Finding = tuple[int, str, str]


def check_compose(root: Path) -> Iterator[Check]:
    """Check the compose file of a checkout and what it mounts and builds; nothing in an installed package.

    Args:
        root: The checkout.
    """
    path = root / COMPOSE_FILE
    if not path.exists():
        yield Check("compose", "absent", f"no {COMPOSE_FILE} here: an installed package has none")
        return
    try:
        compose = load_compose_file(path)
    except (OSError, ValueError) as error:
        yield Check("compose: file", "fail", f"{COMPOSE_FILE}: {error}", "mend its YAML")
        return
    looks: dict[str, Callable[[ComposeFile, Path], Iterator[Finding]]] = {
        "parts": _parts,
        "mounts": _mounts,
        "images": _images,
        "ports": _ports,
        "secrets": _secrets,
        "defaults": _defaults,
    }
    for name, look in looks.items():
        findings = list(look(compose, root))
        yield from (
            Check(f"compose: {name}", "fail", f"{COMPOSE_FILE}:{line}: {what}", mend) for line, what, mend in findings
        )
        if not findings:
            yield Check(f"compose: {name}", "ok", f"{len(compose.services)} parts")
    yield from _generated(root)
    yield from _locks(root)


def _parts(compose: ComposeFile, _root: Path) -> Iterator[Finding]:
    volumes = set(compose.raw.get("volumes") or {})
    for name, service in compose.services.items():
        at = compose.line_of(name)
        if "mem_limit" not in service:
            yield at, f"{name} has no mem_limit", "bound its memory"
        if "healthcheck" not in service and name not in WITHOUT_HEALTH_CHECK:
            yield at, f"{name} has no health check", "add one that its image can run"
        needs = service.get("depends_on") or {}
        for other, how in needs.items() if isinstance(needs, Mapping) else ((one, {}) for one in needs):
            where = compose.line_of(name, f"{other}:")
            if other not in compose.services:
                yield where, f"{name} waits for {other}, which is no part", "name a part"
            elif how.get("condition") == "service_healthy" and "healthcheck" not in compose.services[other]:
                yield where, f"{name} waits for the health of {other}, which has no health check", "add one there"
        for mount in service.get("volumes") or ():
            source = str(mount["source"] if isinstance(mount, Mapping) else mount).partition(":")[0]
            if re.fullmatch(r"[A-Za-z][\w-]*", source) and source not in volumes:
                yield compose.line_of(name, f"{source}:"), f"the volume {source} is declared nowhere", "add it below"


def _missing_mounts(compose: ComposeFile, root: Path, name: str, notifier: str) -> Iterator[str]:
    variables = {"INFERDECK_NOTIFIER": notifier}
    if notifier == "alertmanager":
        variables["INFERDECK_GRAFANA_ALERTING"] = "./alerts/grafana/withdrawn"
    for mount in compose.services[name].get("volumes") or ():
        raw = mount["source"] if isinstance(mount, Mapping) else mount
        source = fill_in(str(raw), variables).partition(":")[0]
        if source.startswith((".", "/")) and not (root / source).exists():
            yield source


def _mounts(compose: ComposeFile, root: Path) -> Iterator[Finding]:
    told: set[tuple[str, str]] = set()
    for notifier in NOTIFIERS:
        for name in sorted(compose.services):
            for source in _missing_mounts(compose, root, name, notifier):
                if (name, source) not in told:
                    told.add((name, source))
                    word = source.rpartition("/")[0] or source
                    yield compose.line_of(name, word), f"{name} mounts {source}, which is not there", "add it"
    if "prometheus" in compose.services and not list((root / "alerts" / "rules").glob("*.yml")):
        yield compose.line_of("prometheus"), "there is no rule in alerts/rules", "run `inferdeck build`"


def _images(compose: ComposeFile, root: Path) -> Iterator[Finding]:
    for name, service in compose.services.items():
        image = fill_in(str(service.get("image", "")), {})
        if not _PINNED.fullmatch(image):
            yield compose.line_of(name, "image:"), f"{name} has the image {image or '(none)'}", "pin it by a tag"
        build = service.get("build") or {}
        if build and not (root / str(build.get("dockerfile", "Dockerfile"))).is_file():
            yield compose.line_of(name, "dockerfile:"), f"{name} is built from no file", "name its Dockerfile"
        elif build:
            text = (root / build["dockerfile"]).read_text(encoding="utf-8")
            # What an image is made from; the other arguments are empty or unknown until somebody fills them in.
            for word in sorted({"BASE", "SERVICE", "TRITON"} & set(build.get("args") or ())):
                made_of = fill_in(str(build["args"][word]), {})
                if f"ARG {word}={made_of}\n" not in text:
                    wrong = f"{build['dockerfile']} has another {word} than {made_of}"
                    yield compose.line_of(name, "build:"), wrong, "make one"


def _ports(compose: ComposeFile, _root: Path) -> Iterator[Finding]:
    for name, service in compose.services.items():
        for port in service.get("ports") or ():
            address = str(port.get("host_ip", "")) if isinstance(port, Mapping) else fill_in(str(port), {})
            if not re.match(r"127\.0\.0\.1(:|$)", address):
                mend = "begin it with 127.0.0.1: the machine's network is not asked in"
                yield compose.line_of(name, "ports:"), f"{name} publishes {port} to the network", mend


def _environment(service: Mapping[str, Any]) -> dict[str, str]:
    raw = service.get("environment") or {}
    pairs = raw.items() if isinstance(raw, Mapping) else (str(one).partition("=")[::2] for one in raw)
    return {str(key): str(value) for key, value in pairs}


def _secrets(compose: ComposeFile, _root: Path) -> Iterator[Finding]:
    for name, service in compose.services.items():
        for variable, value in _environment(service).items():
            # asked for, or left out: an empty default holds nothing
            if _SECRET.search(variable) and not re.match(r"\$\{[A-Z_]+:(\?|-\}$)", value):
                mend = f"write ${{{variable}:?...}}, so that it comes from .env and a missing one stops the start"
                yield compose.line_of(name, f"{variable}:"), f"{name} has {variable} written down", mend
    grafana = _environment(compose.services.get("grafana", {}))
    if grafana and grafana.get("GF_AUTH_ANONYMOUS_ENABLED") != "false":
        yield compose.line_of("grafana", "GF_AUTH_ANONYMOUS"), "Grafana lets anybody in", 'set it to "false"'


def _defaults(compose: ComposeFile, root: Path) -> Iterator[Finding]:
    """Hold what is written here and elsewhere to be the same: ports, Grafana's variables, the dashboards' folder."""
    from alerts.grafana.variables import DEFAULTS, MAY_BE_EMPTY
    from dashboards.provisioning import DASHBOARD_FOLDER

    base = yaml.safe_load((root / "inferdeck" / "config" / "base.yaml").read_text(encoding="utf-8"))
    known = compose.variables_with_default()
    lines = compose.text.splitlines()
    for port in PORTS:
        variable = f"INFERDECK_STACK_{port.upper()}"
        if known.get(variable) != {str(base[port])}:
            at = next((at for at, line in enumerate(lines, 1) if variable in line), 1)
            yield at, f"{variable} has another default than inferdeck/config/base.yaml: {base[port]}", "write that"
    grafana = _environment(compose.services.get("grafana", {}))
    for variable, (default, _what) in DEFAULTS.items():
        if grafana and variable not in MAY_BE_EMPTY and fill_in(grafana.get(variable, ""), {}) != default:
            at = compose.line_of("grafana", variable)
            yield at, f"Grafana's {variable} is not by default {default}", "as alerts/grafana/variables.py has it"
    targets = [
        str(mount).split(":")[1] for mount in compose.services.get("grafana", {}).get("volumes") or () if ":/" in mount
    ]
    if grafana and DASHBOARD_FOLDER not in targets:
        at = compose.line_of("grafana", "volumes:")
        yield at, f"nothing is mounted at {DASHBOARD_FOLDER}, where Grafana looks for dashboards", "mount them there"


def _generated(root: Path) -> Iterator[Check]:
    wrong = [name for name, text in generated_files().items() if _read(root / name) != text]
    if wrong:
        yield Check(
            "compose: generated files", "fail", f"not as generated: {', '.join(wrong)}", "run `inferdeck build`"
        )
    else:
        yield Check("compose: generated files", "ok", ", ".join(generated_files()))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _pins(path: Path) -> dict[str, str]:
    """Return the pins of a lock file by the package's name, each with its hashes."""
    whole = _read(path).replace("\\\n", " ")
    found = (re.match(r"([A-Za-z0-9._-]+)==(.*)", line) for line in whole.splitlines())
    return {match[1]: " ".join(match[2].split()) for match in found if match}


def _locks(root: Path) -> Iterator[Check]:
    """Hold that images get what was tested: their locks are parts of the one lock, hashes included."""
    whole = _pins(root / "requirements.lock")
    locks = sorted((root / "docker").glob("requirements-*.lock"))
    wrong = [
        f"{lock.name}: {name}"
        for lock in locks
        for name, pin in _pins(lock).items()
        if _hashes(pin) != _hashes(whole.get(name, "")) or pin.split()[0] != whole.get(name, "").partition(" ")[0]
    ]
    empty = [lock.name for lock in locks if not _pins(lock)]
    if wrong or empty or not locks:
        told = ", ".join([*wrong[:5], *empty]) or "there are none"
        yield Check("compose: locks", "fail", f"docker/ is not locked as requirements.lock: {told}", "run `make lock`")
    else:
        yield Check("compose: locks", "ok", f"{len(locks)} locks, all pins as in requirements.lock")


def _hashes(pin: str) -> set[str]:
    return set(re.findall(r"sha256:[0-9a-f]{64}", pin))
