"""What the manifests say fits together, and fits the programs that they start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.prometheus_config import JOBS
from alerts.promql import selectors
from alerts.promtool import find_tool, run_tool
from exporters.exporter import Exporter
from exporters.names import METRICS, OBJECTIVES_SECONDS
from exporters.settings import ExporterSettings
from exporters.web import make_app
from inferdeck.manifests.quantity import quantity
from runbooks.settings import TriageSettings
from service.admin import AdminView, admin_app
from service.lifecycle import State
from service.service_metrics import Snapshot
from service.settings import load_settings, unknown_variables
from tests.deploy.conftest import FOLDERS, K8S, Document

FILE_BYTES = 17 << 20


def objects(documents: list[Document], kind: str) -> Iterator[Any]:
    """Return the objects of a kind."""
    return (one for one in documents if one["kind"] == kind)


def named(documents: list[Document], kind: str, name: str = "sentiment") -> Any:
    """Return one object."""
    return next(one for one in objects(documents, kind) if one["metadata"]["name"] == name)


def pod(documents: list[Document], name: str = "sentiment") -> Any:
    """Return the pod of a deployment."""
    return named(documents, "Deployment", name)["spec"]["template"]["spec"]


def environment(container: Any) -> dict[str, str]:
    """Return a container's variables; what comes from a secret is a stand-in."""
    return {one["name"]: one.get("value", "from-a-secret") for one in container["env"]}


@pytest.mark.parametrize("folder", FOLDERS)
def test_everything_that_is_named_is_there(folder: str, rendered: Callable[[str], list[Document]]) -> None:
    """Selectors meet pods, ports have names, mounts have volumes, volumes have their configuration."""
    documents = rendered(folder)
    templates = [one["spec"]["template"] for one in objects(documents, "Deployment")]
    labels = [template["metadata"]["labels"].items() for template in templates]
    for one in documents:
        spec = one.get("spec", {})
        wanted = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
            "Deployment": lambda spec: spec["selector"]["matchLabels"],
        }.get(one["kind"])
        assert wanted is None or any(wanted(spec).items() <= own for own in labels), one["metadata"]["name"]
    ports = {
        port["name"]
        for template in templates
        for each in template["spec"]["containers"] + template["spec"].get("initContainers", [])
        for port in each["ports"]
    }
    assert {port["targetPort"] for one in objects(documents, "Service") for port in one["spec"]["ports"]} <= ports
    for template in templates:
        volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
        for each in template["spec"]["containers"] + template["spec"].get("initContainers", []):
            assert {mount["name"] for mount in each["volumeMounts"]} <= volumes.keys()
        for volume in volumes.values():
            if "configMap" in volume:
                named(documents, "ConfigMap", volume["configMap"]["name"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_container_may_do_more_than_it_needs(folder: str, rendered: Callable[[str], list[Document]]) -> None:
    """The namespace demands it: nobody is root, no file of the image can be written, no privilege can be got."""
    documents = rendered(folder)

    assert named(documents, "Namespace", "inferdeck")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    for one in objects(documents, "Deployment"):
        spec = one["spec"]["template"]["spec"]
        assert (True, "RuntimeDefault") == (
            spec["securityContext"]["runAsNonRoot"],
            spec["securityContext"]["seccompProfile"]["type"],
        )
        for each in spec["containers"] + spec.get("initContainers", []):
            assert {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            } == each["securityContext"]
            assert each["resources"]["limits"]["memory"]


def test_the_service_takes_every_setting_that_it_is_given(
    rendered: Callable[[str], list[Document]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt variable would be a default that nobody chose."""
    told = environment(pod(rendered("base"))["containers"][0])
    for name, value in told.items():
        monkeypatch.setenv(name, value)

    settings = load_settings()

    assert [] == unknown_variables(told)
    assert ("prod", "0.0.0.0", "0.0.0.0", 10) == (
        settings.profile,
        settings.host,
        settings.admin_host,
        settings.shutdown_seconds,
    )
    assert [8080, 8081] == [settings.port, settings.admin_port]


def test_the_exporter_takes_every_setting_that_it_is_given(
    rendered: Callable[[str], list[Document]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts, since a token guards its port, and listens where the probes and the scrape go."""
    container = pod(rendered("overlays/jaeger"))["initContainers"][0]
    told = environment(container)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    known = {f"INFERDECK_EXPORTER_{name.upper()}" for name in ExporterSettings.model_fields}

    settings = ExporterSettings()

    assert told.keys() <= known | {"INFERDECK_RING_DIR", "INFERDECK_STATE_DIR"}
    assert container["ports"] == [{"name": "exporter", "containerPort": settings.port}]
    assert settings.otlp_endpoint == "http://jaeger.inferdeck.svc:4318"


def test_probes_ask_for_pages_that_are_served(
    rendered: Callable[[str], list[Document]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the admin port and of the exporter; a path that is not there would never be ready."""
    shown = Snapshot("1", "c", "", "", "ready", {})
    admin = admin_app(AdminView(lambda: State("ready"), lambda: 0.0, lambda: shown, 10.0))
    monkeypatch.setenv("INFERDECK_RING_DIR", str(tmp_path))
    exporter = make_app(Exporter(ExporterSettings(state_dir=tmp_path)))
    spec = pod(rendered("base"))

    for container, app in ((spec["containers"][0], admin), (spec["initContainers"][0], exporter)):
        asked = {probe["httpGet"]["path"] for name, probe in container.items() if name.endswith("Probe")}
        assert asked <= {route.path for route in app.routes}  # type: ignore[attr-defined]


def test_service_and_exporter_share_the_rows_as_one_user(rendered: Callable[[str], list[Document]]) -> None:
    """Rows lie below the volume and not in it: the folder must be its owner's alone, and a volume is everybody's."""
    spec = pod(rendered("base"))
    service, exporter = spec["containers"][0], spec["initContainers"][0]

    assert exporter["restartPolicy"] == "Always"
    assert environment(service)["INFERDECK_RING_DIR"] == environment(exporter)["INFERDECK_RING_DIR"] == "/rows/ring"
    assert {"name": "rows", "mountPath": "/rows"} in service["volumeMounts"]
    assert {"name": "rows", "mountPath": "/rows"} in exporter["volumeMounts"]
    assert not any("runAsUser" in each["securityContext"] for each in (service, exporter))


def test_the_rows_fit_their_volume_and_the_volume_its_container(rendered: Callable[[str], list[Document]]) -> None:
    """Live, kept and coming files of 17 MiB; memory of a tmpfs counts as the container's that wrote it."""
    spec = pod(rendered("base"))
    rows = next(volume["emptyDir"] for volume in spec["volumes"] if volume["name"] == "rows")
    kept = int(environment(spec["initContainers"][0])["INFERDECK_EXPORTER_LAST_FLIGHT_FILES"])

    assert rows["medium"] == "Memory"
    assert (kept + 2) * FILE_BYTES <= quantity(rows["sizeLimit"])
    assert 4 * quantity(rows["sizeLimit"]) <= quantity(spec["containers"][0]["resources"]["limits"]["memory"])


def test_a_rollout_leaves_no_gap_but_where_it_is_told(rendered: Callable[[str], list[Document]]) -> None:
    """The base surges; the overlay for scarce cards takes one pod away first, and has the article's figures."""
    base, scarce = (named(rendered(name), "Deployment")["spec"] for name in ("base", "overlays/scarce-gpu"))

    assert {"maxSurge": 1, "maxUnavailable": 0} == base["strategy"]["rollingUpdate"]
    assert {"maxSurge": 0, "maxUnavailable": 1} == scarce["strategy"]["rollingUpdate"]
    assert scarce["template"]["spec"]["containers"][0]["readinessProbe"]["initialDelaySeconds"] == 60
    assert min(base["replicas"], scarce["replicas"]) == 2
    assert "OUTAGE" in (K8S / "overlays" / "scarce-gpu" / "kustomization.yaml").read_text(encoding="utf-8")


def queries() -> list[str]:
    """Return the scaling query of KEDA and that of the adapter."""
    scaled = yaml.safe_load((K8S / "components" / "keda" / "scaled-object.yaml").read_text(encoding="utf-8"))
    adapter = yaml.safe_load((K8S / "components/hpa/prometheus-adapter-values.yaml").read_text(encoding="utf-8"))
    return [
        scaled["spec"]["triggers"][0]["metadata"]["query"],
        adapter["rules"]["external"][0]["metricsQuery"],
    ]


def test_both_scalers_ask_one_question_about_metrics_that_exist(rendered: Callable[[str], list[Document]]) -> None:
    """Waiting, never a percentage of a processor; and neither fights with a fixed number of replicas."""
    keda, adapter = queries()
    scaled = named(rendered("overlays/autoscale-keda"), "ScaledObject")
    hpa = named(rendered("overlays/autoscale-hpa"), "HorizontalPodAutoscaler")
    target = hpa["spec"]["metrics"][0]["external"]["target"]

    assert keda == adapter
    assert {"model_stage_seconds"} == {one.metric.rsplit("_", 1)[0] for one in selectors(keda)} & METRICS.keys()
    assert float(scaled["spec"]["triggers"][0]["metadata"]["threshold"]) == OBJECTIVES_SECONDS["short"] / 10
    assert quantity(target["value"]) == OBJECTIVES_SECONDS["short"] / 10
    for folder in ("overlays/autoscale-keda", "overlays/autoscale-hpa"):
        assert "replicas" not in named(rendered(folder), "Deployment")["spec"]


def test_the_scaling_query_measures_waiting(tmp_path: Path) -> None:
    """50 requests a second that wait 40 ms and work 10 ms; then none at all, which is no waiting."""
    if find_tool("promtool") is None:
        pytest.skip("no promtool: `make setup` fetches it")
    (tmp_path / "rules.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "scale", "rules": [{"record": "wait", "expr": queries()[0]}]}]})
    )
    dispatch = "model_stage_seconds_sum{stage='scheduler.dispatch', instance='%s'}"
    series = [
        {"series": dispatch % "a", "values": "0+12.5x20 250x40"},
        {"series": dispatch % "b", "values": "0+25x20 500x40"},
        {"series": "model_stage_seconds_sum{stage='model.forward'}", "values": "0+6.75x20 135x40"},
        {"series": "model_stage_seconds_sum{stage='sentiment.tokenizer'}", "values": "0+0.75x20 15x40"},
        {"series": "model_stage_seconds_count{stage='scheduler.dispatch'}", "values": "0+750x20 15000x40"},
    ]
    asked = [(300, 0.04), (900, 0.0)]
    case = {
        "interval": "15s",
        "input_series": series,
        "promql_expr_test": [
            {"expr": "round(wait, 0.0001)", "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": value}]}
            for at, value in asked
        ],
    }
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": [case]})
    )

    done = run_tool("promtool", ["test", "rules", tmp_path / "test.yml"])

    assert done.rc == 0, done.output


def test_the_agent_scrapes_the_jobs_that_rules_speak_about() -> None:
    """By names that resolve to every pod, at the ports of its two pages."""
    config = yaml.safe_load((K8S / "overlays/remote-write/prometheus.yml").read_text(encoding="utf-8"))
    agent = {one["job_name"]: one["dns_sd_configs"][0]["port"] for one in config["scrape_configs"]}

    assert {"service": 8081, "inferdeck-exporter": 9464} == agent
    assert set(agent) <= set(JOBS)
    assert config["global"]["external_labels"] == {"service": "sentiment"}


def test_the_operators_monitors_find_pods_and_ports(rendered: Callable[[str], list[Document]]) -> None:
    """What alerts/operator selects by is what the pods and the triage service bear; each port is one of theirs."""
    documents = rendered("overlays/operator")
    pods = [one["spec"]["template"] for one in objects(documents, "Deployment")]
    podmonitor, servicemonitor = next(objects(documents, "PodMonitor")), next(objects(documents, "ServiceMonitor"))
    chosen = [
        one["spec"]
        for one in pods
        if podmonitor["spec"]["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
    ]
    behind = [
        one
        for one in objects(documents, "Service")
        if servicemonitor["spec"]["selector"]["matchLabels"].items() <= one["metadata"].get("labels", {}).items()
    ]

    assert [["service"]] == [[each["name"] for each in spec["containers"]] for spec in chosen]
    ports = {port["name"] for each in chosen[0]["containers"] + chosen[0]["initContainers"] for port in each["ports"]}
    assert {one["port"] for one in podmonitor["spec"]["podMetricsEndpoints"]} <= ports
    assert ["triage"] == [one["metadata"]["name"] for one in behind]
    assert {one["port"] for one in servicemonitor["spec"]["endpoints"]} <= {
        port["name"] for port in behind[0]["spec"]["ports"]
    }


def test_triage_takes_every_setting_that_it_is_given(
    rendered: Callable[[str], list[Document]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts, since a token guards its port."""
    container = pod(rendered("overlays/operator"), "triage")["containers"][0]
    told = environment(container)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    known = {f"INFERDECK_TRIAGE_{name.upper()}" for name in TriageSettings.model_fields}

    settings = TriageSettings()

    assert told.keys() <= known | {"INFERDECK_RING_DIR", "INFERDECK_STATE_DIR", "INFERDECK_PROMETHEUS_URL"}
    assert container["ports"] == [{"name": "triage", "containerPort": settings.port}]


def test_the_agents_configuration_is_one() -> None:
    """As promtool reads it."""
    if find_tool("promtool") is None:
        pytest.skip("no promtool: `make setup` fetches it")

    done = run_tool(
        "promtool", ["check", "config", "--agent", "--syntax-only", K8S / "overlays/remote-write/prometheus.yml"]
    )

    assert done.rc == 0, done.output
