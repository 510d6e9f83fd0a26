"""Mitigations are off until switched on, limited, written down first, one at a time, checked again and taken back."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runbooks.mitigation.action import Action, ActionFailedError, Done, argv_action
from runbooks.mitigation.journal import RESERVE_BYTES, Journal, JournalError
from runbooks.mitigation.mitigator import Asker, Limits, Mitigator, Refused
from runbooks.mitigation.recovery import wait_recovered
from runbooks.mitigation.settings import MitigationSettings
from runbooks.pages import Mitigation, load_pages

ROOT = Path(__file__).resolve().parents[3]
GOOD = load_pages()["event_loop_blocked"]
LIMITS = Limits()
PERSON = Asker("user 0", "asked for it")


def page(*offers: Mitigation) -> dict[str, Any]:
    """Return a page of the alert Broken with these offers."""
    return {"broken": replace(GOOD, alert="Broken", slug="broken", path="Broken.md", mitigations=offers)}


class Stack:
    """Something that is broken, three mitigations, and a clock that only this test moves."""

    def __init__(self, folder: Path, *, cures: str = "safe_one", holds: bool | None = True) -> None:
        self.passes = False
        self.now, self.cures, self.bad, self.done = 1e9, cures, holds, list[str]()
        self.journal = Journal(folder / "mitigations", lambda: self.now)
        offers = (
            Mitigation("inferdeck status", "none"),
            Mitigation("a", "b", "safe_one", safe=True),
            Mitigation("a", "b", "risky_one"),
        )
        self.actions = {
            "safe_one": Action("safe_one", "does the safe thing", lambda: self.act("safe_one"), self.take_back),
            "risky_one": Action("risky_one", "does the risky thing", lambda: self.act("risky_one")),
        }
        self.pages = page(*offers)

    def act(self, name: str) -> Done:
        """Carry out; the cure makes it well."""
        self.done.append(name)
        if name == self.cures:
            self.bad = False
        return Done(f"{name} was done", {"before": len(self.done)})

    def take_back(self, memo: Mapping[str, Any]) -> str:
        """Take back."""
        self.done.append(f"back {memo['before']}")
        return "as it was before"

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.bad = False if self.passes else self.bad

    def mitigator(self, limits: Limits = LIMITS) -> Mitigator:
        """Return a mitigator over this stack."""
        return Mitigator(
            self.journal,
            self.actions,
            self.pages,
            lambda _alert: self.bad,
            limits=limits,
            recheck_seconds=30.0,
            clock=lambda: self.now,
            sleep=self.sleep,
            tick=lambda: self.now,
        )


def automatic(*enabled: str) -> Asker:
    """Return the triage service with these ids switched on."""
    return Asker("automatic", "report r names it", "r", frozenset(enabled))


def test_a_mitigation_that_helps_is_written_down_before_and_after(tmp_path: Path) -> None:
    """Who, what, when, why, by which report, and how it ended; private to the user."""
    stack = Stack(tmp_path)

    (run,) = stack.mitigator().mitigate("Broken", automatic("safe_one"))

    assert ("recovered", "safe_one was done", None) == (run["outcome"], run["detail"], run["undo"])
    intent, result = stack.journal.entries()
    assert ("intent", "safe_one", "Broken", "automatic", "r") == tuple(
        intent[key] for key in ("event", "id", "alert", "who", "report")
    )
    assert "names it" in intent["why"]
    assert ("result", run["run"], "recovered") == (result["event"], result["run"], result["outcome"])
    assert intent["at"] < result["at"]
    assert 0o600 == stat.S_IMODE(stack.journal.path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(stack.journal.folder.stat().st_mode)


@pytest.mark.parametrize(
    ("asker", "said"),
    [
        (automatic(), "switched off: INFERDECK_TRIAGE_MITIGATE names none of safe_one, risky_one (not safe)"),
        (automatic("risky_one"), "switched off"),
        (automatic("another"), "switched off"),
    ],
)
def test_what_is_not_switched_on_and_safe_is_never_done_by_itself(tmp_path: Path, asker: Asker, said: str) -> None:
    """Off is the default; a risky one stays off whatever is switched on."""
    stack = Stack(tmp_path)

    with pytest.raises(Refused) as refusal:
        stack.mitigator().mitigate("Broken", asker)

    assert said in str(refusal.value)
    assert ([], []) == (stack.done, stack.journal.entries())


def test_what_does_not_help_is_taken_back_and_the_next_is_tried(tmp_path: Path) -> None:
    """In the order of the page, each checked by itself; a person may go on to the risky one."""
    stack = Stack(tmp_path, cures="risky_one")

    first, second = stack.mitigator().mitigate("Broken", PERSON)

    assert ("not_recovered", {"outcome": "undone", "detail": "as it was before"}) == (first["outcome"], first["undo"])
    assert ("recovered", None) == (second["outcome"], second["undo"])
    assert ["safe_one", "back 1", "risky_one"] == stack.done
    events = [entry["event"] for entry in stack.journal.entries()]
    assert ["intent", "result", "undo_intent", "undo_result", "intent", "result"] == events


def test_what_cannot_be_taken_back_is_said(tmp_path: Path) -> None:
    """Neither helped: the last one has no way back."""
    stack = Stack(tmp_path, cures="nothing")

    results = stack.mitigator().mitigate("Broken", PERSON)

    assert {"outcome": "impossible", "detail": "nothing can take risky_one back"} == results[-1]["undo"]


def test_by_itself_only_the_switched_on_one_is_tried(tmp_path: Path) -> None:
    """The risky one would help, and is left to a person all the same."""
    stack = Stack(tmp_path, cures="risky_one")

    results = stack.mitigator().mitigate("Broken", automatic("safe_one", "risky_one"))

    assert ["not_recovered"] == [one["outcome"] for one in results]
    assert ["safe_one", "back 1"] == stack.done


def test_one_is_not_repeated_beyond_its_limit_within_the_hour(tmp_path: Path) -> None:
    """A restart that did not help twice will not help the third time; after an hour it may be tried again."""
    stack = Stack(tmp_path)
    mitigator = stack.mitigator(Limits(per_id=2, total=10))
    for _ in range(2):
        stack.bad = True
        mitigator.mitigate("Broken", automatic("safe_one"))
    stack.bad = True

    with pytest.raises(Refused, match="safe_one was carried out 2 times within the hour"):
        mitigator.mitigate("Broken", automatic("safe_one"))
    stack.now += 3601.0

    assert ["recovered"] == [one["outcome"] for one in mitigator.mitigate("Broken", automatic("safe_one"))]


def test_all_together_have_a_limit_too_and_another_process_knows_it(tmp_path: Path) -> None:
    """The limit is read from the journal: starting anew does not lift it."""
    stack = Stack(tmp_path, cures="risky_one")
    stack.mitigator(Limits(per_id=5, total=2)).mitigate("Broken", PERSON)
    again = Stack(tmp_path)
    again.now = stack.now

    with pytest.raises(Refused, match="2 mitigations within the hour"):
        again.mitigator(Limits(per_id=5, total=2)).mitigate("Broken", PERSON)
    assert [] == again.done


def test_two_are_never_carried_out_at_once(tmp_path: Path) -> None:
    """Whoever comes second is told."""
    stack = Stack(tmp_path)

    with Journal(tmp_path / "mitigations", lambda: 0.0).alone() as mine:
        assert mine
        with pytest.raises(Refused, match="another"):
            stack.mitigator().mitigate("Broken", PERSON)
    assert [] == stack.done


def test_nothing_is_done_when_nothing_is_wrong(tmp_path: Path) -> None:
    """The alert is over already: a restart now would be an outage of its own."""
    with pytest.raises(Refused, match="not true now"):
        Stack(tmp_path, holds=False).mitigator().mitigate("Broken", PERSON)


def test_what_is_true_for_a_moment_only_is_left_alone(tmp_path: Path) -> None:
    """Right after a start an expression may hold for want of samples; looked at again, it does not."""
    stack = Stack(tmp_path)
    stack.passes = True

    with pytest.raises(Refused, match="not true now"):
        stack.mitigator().mitigate("Broken", PERSON)
    assert [] == stack.done


def test_where_recovery_cannot_be_seen_only_a_person_may_act(tmp_path: Path) -> None:
    """Without Prometheus nothing is done by itself; a person may, and is told that nobody knows whether it helped."""
    stack = Stack(tmp_path, holds=None, cures="nothing")

    with pytest.raises(Refused, match="cannot be told whether Broken still holds"):
        stack.mitigator().mitigate("Broken", automatic("safe_one"))
    (run,) = stack.mitigator().mitigate("Broken", PERSON)

    assert ("unknown", None) == (run["outcome"], run["undo"])


def test_an_action_that_fails_is_written_down_and_the_next_is_tried(tmp_path: Path) -> None:
    """Whatever it raises."""
    stack = Stack(tmp_path, cures="risky_one")

    def fail() -> Done:
        raise ActionFailedError("no supervisor")

    stack.actions["safe_one"] = replace(stack.actions["safe_one"], run=fail)
    results = stack.mitigator().mitigate("Broken", PERSON)

    assert [("failed", "no supervisor"), ("recovered", "risky_one was done")] == [
        (one["outcome"], one["detail"]) for one in results
    ]


def test_a_person_can_take_a_run_back_once(tmp_path: Path) -> None:
    """By its id, with what the run had noted; twice is refused, and so is what nothing can take back."""
    stack = Stack(tmp_path)
    (run,) = stack.mitigator().mitigate("Broken", PERSON)

    undone = stack.mitigator().undo(run["run"], PERSON)

    assert ("undone", ["safe_one", "back 1"]) == (undone["outcome"], stack.done)
    with pytest.raises(Refused, match="was taken back already"):
        stack.mitigator().undo(run["run"], PERSON)
    with pytest.raises(Refused, match="no run 'nobody'"):
        stack.mitigator().undo("nobody", PERSON)


CRASH = """
    import os, sys
    from pathlib import Path
    from runbooks.mitigation.action import Action
    from tests.runbooks.mitigation.test_mitigator import PERSON, Stack
    stack = Stack(Path(sys.argv[1]))
    stack.actions["safe_one"] = Action("safe_one", "dies", lambda: os._exit(9))
    stack.mitigator().mitigate("Broken", PERSON)
"""


def test_a_crash_in_the_middle_leaves_its_intent_and_counts(tmp_path: Path) -> None:
    """The line was on the disk before anything was done; who comes next finds no lock and says "interrupted"."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CRASH), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    stack = Stack(tmp_path)

    assert (9, ["intent"]) == (done.returncode, [entry["event"] for entry in stack.journal.entries()]), done.stderr
    with pytest.raises(Refused, match="safe_one was carried out 1 times"):
        stack.mitigator(Limits(per_id=1)).mitigate("Broken", automatic("safe_one"))
    assert "interrupted" == stack.journal.entries()[-1]["outcome"]


def test_nothing_is_done_that_cannot_be_written_down(tmp_path: Path) -> None:
    """A journal that is a folder: the action is not carried out."""
    stack = Stack(tmp_path)
    stack.journal.path.mkdir(parents=True)

    with pytest.raises(Refused, match="nothing is done that cannot be written down"):
        stack.mitigator().mitigate("Broken", PERSON)
    assert [] == stack.done


def test_the_journal_is_bounded_and_keeps_what_came_just_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its size it is set aside, and the one set aside before goes."""
    journal = Journal(tmp_path, lambda: 1.0)
    for number in range(3000):
        journal.path.parent.mkdir(exist_ok=True)
        if number % 1000 == 0:
            with journal.path.open("a") as file:
                file.write("x" * (1 << 20))
        if number % 500 == 0:
            journal.append("intent", run=str(number))

    sizes = [path.stat().st_size for path in tmp_path.glob("journal*")]
    assert 2 == len(sizes)
    assert max(sizes) < (1 << 20) + 1000
    assert "2500" == journal.entries()[-1]["run"]


def test_lines_that_cannot_be_read_cost_themselves_alone(tmp_path: Path) -> None:
    """Half a line of a power cut, and a time that somebody spoilt, which counts as recent."""
    stack = Stack(tmp_path)
    stack.journal.prepare()
    spoilt = json.dumps({"event": "intent", "run": "x", "id": "safe_one", "at": "yesterday"})
    stack.journal.path.write_text('{"event": "inte\n' + spoilt + "\n[1]\n")

    with pytest.raises(Refused, match="carried out 1 times"):
        stack.mitigator(Limits(per_id=1)).mitigate("Broken", automatic("safe_one"))


def test_room_is_set_aside_for_the_day_on_which_the_disk_is_full(tmp_path: Path) -> None:
    """The reserve holds real blocks, and is there once."""
    journal = Journal(tmp_path / "m", lambda: 1.0)
    journal.prepare()
    journal.prepare()

    reserve = tmp_path / "m" / "reserve"
    assert RESERVE_BYTES == reserve.stat().st_size
    assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
    with pytest.raises(JournalError, match="cannot be made"):
        Journal(reserve / "below", lambda: 1.0).prepare()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([True, False, False], True),
        ([True, False, True, True, True, True, True], False),
        ([None] * 7, None),
        ([None, True, False, False], True),
        ([True, None, None, None, None, None, None], False),
    ],
)
def test_over_is_what_is_quiet_twice_in_a_row(answers: list[bool | None], expected: bool | None) -> None:
    """One quiet look may be for want of samples; never having seen anything is no recovery."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    left = iter(answers)
    assert expected is wait_recovered(lambda: next(left), 30.0, sleep=sleep, tick=lambda: now[0])


def test_an_argument_list_is_run_without_a_shell() -> None:
    """What looks like a shell's sign is an argument; a failure is told with what the program said."""
    echo = argv_action("say", "says", ["echo", "$(id); exit 1"])
    fails = argv_action("fail", "fails", [sys.executable, "-c", "import sys; sys.exit('no such part')"])

    assert "echo ended well: $(id); exit 1" == echo.run().detail
    with pytest.raises(ActionFailedError, match="ended with 1: no such part"):
        fails.run()
    with pytest.raises(ActionFailedError, match="cannot be run"):
        argv_action("gone", "is not there", ["/nowhere/at-all"]).run()


@pytest.mark.parametrize(
    ("value", "said"), [("restart_everything", "is in no page"), ("prune_archive", "is not marked safe")]
)
def test_a_wrong_switch_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str, tmp_path: Path
) -> None:
    """And not in the incident."""
    monkeypatch.setenv("INFERDECK_TRIAGE_MITIGATE", f"restart_service, {value}")

    with pytest.raises(ValueError, match=said):
        MitigationSettings(state_dir=tmp_path)


def test_without_a_setting_nothing_is_switched_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The default does nothing at all."""
    monkeypatch.delenv("INFERDECK_TRIAGE_MITIGATE", raising=False)

    assert frozenset() == MitigationSettings(state_dir=tmp_path).enabled
