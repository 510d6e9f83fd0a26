from __future__ import annotations

from collections.abc import Callable

from exporters.collector import Snapshot as Shown
from exporters.collector import families
from exporters.gpu.gauges import gpu_gauges
from exporters.gpu.reading import Card, CardProcess, Snapshot
from exporters.names import METRICS, OTHER
from exporters.names_gpu import PROCESS_LIMIT
from exporters.totals import Totals
from tests.exporters.gpu.scenarios import GIB, H200, TWO_ONE_LOST
from tests.exporters.gpu.test_nvml import snapshot


def shown(found: Snapshot, own_pids: set[int] | None = None) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What a scrape would read: samples by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(Shown(Totals(), gpu_gauges(found, own_pids)))
        for sample in family.samples
        if sample.name != "telemetry_series"
    }


def test_without_nvml_there_is_an_up_that_is_0_and_no_value() -> None:
    """A machine without a driver shows that NVML does not answer, why, and nothing about cards."""
    samples = shown(Snapshot("library_missing"))

    assert 0.0 == samples["gpu_exporter_up", ()]
    assert [("gpu_exporter_state", (("state", "library_missing"),))] == [key for key, value in samples.items() if value]
    assert {"gpu_exporter_up", "gpu_exporter_state"} == {name for name, _ in samples}


def test_a_lost_card_is_down_and_has_no_values(look: Callable[[str], str]) -> None:
    """The lost card's only figures are its states; the idle card's 0 is shown, since it was measured."""
    samples = shown(snapshot(look(TWO_ONE_LOST)))

    assert (1.0, 0.0, 1.0) == (
        samples["gpu_exporter_up", ()],
        samples["gpu_card_up", (("gpu", "0"),)],
        samples["gpu_card_state", (("gpu", "0"), ("state", "lost"))],
    )
    assert 0.0 == samples["gpu_utilization_ratio", (("gpu", "1"),)]
    lost = {name for name, labels in samples if ("gpu", "0") in labels}
    assert {"gpu_card_up", "gpu_card_state"} == lost
    assert 0.0 == samples["gpu_reading_up", (("gpu", "1"), ("reading", "power"))]
    assert ("gpu_power_watts", (("gpu", "1"),)) not in samples


def test_memory_of_the_service_is_told_from_that_of_others(look: Callable[[str], str]) -> None:
    """Owner says whose process it is; one whose memory is unknown is counted and adds none."""
    samples = shown(snapshot(look(H200)), {4001})

    assert 30.0 * GIB == samples["gpu_process_memory_bytes", (("gpu", "0"), ("owner", "own"), ("process", "python"))]
    assert 10.0 * GIB == samples["gpu_process_memory_bytes", (("gpu", "0"), ("owner", "other"), ("process", "python"))]
    assert (1.0, 2.0) == (
        samples["gpu_processes", (("gpu", "0"), ("owner", "own"))],
        samples["gpu_processes", (("gpu", "0"), ("owner", "other"))],
    )
    assert 3.0 == samples["gpu_ecc_errors_total", (("ecc", "corrected"), ("gpu", "0"))]


def test_the_model_in_triton_is_the_services_own() -> None:
    """Its server and its stubs hold the service's model, and are no workers of it; nobody else is."""
    processes = (CardProcess(7, "tritonserver", GIB), CardProcess(8, "triton_python_backend_stub", 2 * GIB))
    card = Card("0", "card", "ok", {"processes": {}}, (*processes, CardProcess(9, "train", 4 * GIB)))
    samples = shown(Snapshot("ok", "580", (card,)), {4001})

    held = {dict(labels)["process"]: dict(labels)["owner"] for name, labels in samples if "process_memory" in name}
    assert {"tritonserver": "own", "triton_python_backend_stub": "own", "train": "other"} == held


def test_without_a_service_nobody_is_called_a_stranger(look: Callable[[str], str]) -> None:
    """The exporter of a card alone does not know whose processes there are, and says that."""
    samples = shown(snapshot(look(H200)))

    assert {"unknown"} == {value for name, labels in samples for label, value in labels if label == "owner"}


def test_programs_are_bounded() -> None:
    """Only those with most memory keep their names, whatever runs there."""
    processes = tuple(CardProcess(pid, f"p{pid}", pid) for pid in range(1, 3 * PROCESS_LIMIT))

    samples = shown(Snapshot("ok", "1", (Card("0", "x", "ok", {"processes": {}}, processes),)), set())

    programs = {value for _, labels in samples for label, value in labels if label == "process"}
    assert {OTHER, *(f"p{pid}" for pid in range(2 * PROCESS_LIMIT, 3 * PROCESS_LIMIT))} == programs
    assert sum(range(1, 3 * PROCESS_LIMIT)) == sum(
        value for (name, _), value in samples.items() if name == "gpu_process_memory_bytes"
    )


def test_every_value_that_a_card_can_give_has_a_name(look: Callable[[str], str]) -> None:
    """All GPU metrics come out of one whole card, and nothing comes out that has no name."""
    gauges = gpu_gauges(snapshot(look(H200)), {4001})

    assert {name for name in METRICS if name.startswith("gpu_")} == set(gauges)
