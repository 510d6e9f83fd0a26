from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from exporters.gpu.nvml import NvmlReader
from exporters.gpu.reading import Absent, Card, CardProcess, Snapshot
from tests.exporters.gpu.scenarios import GIB, H200, MIG, TWO_ONE_LOST

KNOWN = {"Snapshot": Snapshot, "Card": Card, "CardProcess": CardProcess, "Absent": Absent}


def snapshot(text: str) -> Snapshot:
    """The snapshot that a process printed."""
    found = eval(text, {"__builtins__": {}}, KNOWN)  # noqa: S307 - our own process printed it
    assert isinstance(found, Snapshot)
    return found


def test_a_whole_card_is_read_in_base_units(look: Callable[[str], str]) -> None:
    """Percent, milliwatts and megahertz come out as ratio, watts and hertz, and reasons of throttling as words."""
    found = snapshot(look(H200))

    (card,) = found.cards
    values = {
        key: value
        for reading in card.readings.values()
        if not isinstance(reading, Absent)
        for key, value in reading.items()
    }
    assert ("ok", "580.65.06") == (found.state, found.driver)
    assert ("0", "NVIDIA H200", "ok") == (card.label, card.name, card.state)
    assert {
        ("gpu_utilization_ratio", ()): pytest.approx(0.37),
        ("gpu_memory_busy_ratio", ()): pytest.approx(0.12),
        ("gpu_memory_size_bytes", ()): 141 * GIB,
        ("gpu_memory_used_bytes", ()): 41 * GIB,
        ("gpu_memory_free_bytes", ()): 100 * GIB,
        ("gpu_temperature_celsius", ()): 44,
        ("gpu_power_watts", ()): pytest.approx(312.5),
        ("gpu_power_limit_watts", ()): 700,
        ("gpu_clock_hertz", ("sm",)): 1.98e9,
        ("gpu_clock_hertz", ("memory",)): 3.201e9,
        ("gpu_ecc_errors_total", ("corrected",)): 3,
        ("gpu_ecc_errors_total", ("uncorrected",)): 0,
    } == {key: value for key, value in values.items() if key[0] != "gpu_throttle_state"}
    assert [("power_cap",)] == [labels for (name, labels), value in values.items() if name.endswith("_state") and value]


def test_processes_are_named_by_their_program_alone(look: Callable[[str], str]) -> None:
    """Folders are left out, and memory that the driver does not tell is absent, not 0."""
    (card,) = snapshot(look(H200)).cards

    assert (
        CardProcess(4001, "python", 30 * GIB),
        CardProcess(4002, "python", 10 * GIB),
        CardProcess(4003, "train", Absent("not_supported")),
    ) == card.processes


def test_a_divided_card_tells_what_it_can(look: Callable[[str], str]) -> None:
    """Under MIG utilisation is absent, who computes needs rights; an instance has memory and processes."""
    card, instance = snapshot(look(MIG)).cards

    assert Absent("not_supported") == card.readings["utilization"]
    assert Absent("no_permission") == card.readings["processes"]
    assert ("0/2", "ok") == (instance.label, instance.state)
    assert {
        ("gpu_memory_size_bytes", ()): 16.0 * GIB,
        ("gpu_memory_used_bytes", ()): 1.0 * GIB,
        ("gpu_memory_free_bytes", ()): 15.0 * GIB,
    } == instance.readings["memory"]
    assert (CardProcess(5001, "serve", GIB),) == instance.processes


def test_a_lost_card_has_no_values_and_costs_the_others_nothing(look: Callable[[str], str]) -> None:
    """One card fell off the bus: it has a state and no readings, and an idle card beside it reads 0 because it is 0."""
    lost, idle = snapshot(look(TWO_ONE_LOST)).cards

    assert Card("0", "", "lost") == lost
    assert {("gpu_utilization_ratio", ()): 0.0, ("gpu_memory_busy_ratio", ()): 0.0} == idle.readings["utilization"]


def test_a_card_that_is_lost_between_two_readings_has_none(look: Callable[[str], str]) -> None:
    """Half of a card's figures would look like a card."""
    (card,) = snapshot(look(H200.replace("0.power 312500", "0.power !15"))).cards

    assert Card("0", "NVIDIA H200", "lost") == card


def test_a_card_that_is_no_longer_counted_is_missed(look: Callable[[str], str]) -> None:
    """A driver may leave a lost card out of its count; whoever saw it goes on saying that it is gone."""
    look(H200)

    found = snapshot(look("driver 580.65.06\ncount 0\n"))

    assert Snapshot("ok", "580.65.06", (Card("0", "NVIDIA H200", "lost"),)) == found


def test_a_driver_that_goes_and_comes_back_is_followed(look: Callable[[str], str]) -> None:
    """Without the driver every card that was seen says so; when it is back, values are."""
    assert "ok" == snapshot(look(H200)).state

    gone = snapshot(look(""))
    back = snapshot(look(H200))

    assert Snapshot("driver_gone", "", (Card("0", "NVIDIA H200", "driver_gone"),)) == gone
    assert ("ok", "ok") == (back.state, back.cards[0].state)


@pytest.mark.parametrize(
    ("scenario", "state"),
    [
        ("init !9\n", "driver_gone"),
        ("init !18\n", "driver_mismatch"),
        ("init !4\n", "no_permission"),
        ("init !12345\n", "error"),
        ("driver 1\ncount 0\n", "no_device"),
        ("driver !4\ncount 1\n", "no_permission"),
    ],
)
def test_nvml_that_does_not_answer_says_why(look: Callable[[str], str], scenario: str, state: str) -> None:
    """Each way of having no cards has its word."""
    assert Snapshot(state) == Snapshot(snapshot(look(scenario)).state)


def test_a_machine_without_the_driver_s_library_says_so() -> None:
    """The real pynvml without any libnvidia-ml, and no pynvml at all, are the same to who watches."""
    program = "from exporters.gpu.nvml import NvmlReader; print(repr(NvmlReader().read()))"
    try:
        import ctypes

        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert Snapshot("library_missing") == snapshot(found)

    def not_installed() -> object:
        raise ImportError("No module named 'pynvml'")

    assert Snapshot("library_missing") == NvmlReader(not_installed).read()
