from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.schema import FIXED_COLUMNS, KINDS, Column, compile_revision, kind_of

COLUMNS = st.lists(
    st.builds(Column, st.text("abcdef/_", min_size=1, max_size=12), st.sampled_from(sorted(KINDS))),
    unique_by=lambda column: column.name,
    max_size=20,
)


@given(COLUMNS)
def test_the_struct_and_the_numpy_type_of_a_revision_have_the_same_bytes(columns: list[Column]) -> None:
    """What the writer packs is what the reader sees, column by column."""
    revision = compile_revision(columns)

    assert revision.packer.size == revision.dtype.itemsize


@given(COLUMNS, COLUMNS)
def test_an_older_row_is_a_prefix_of_a_newer_one(before: list[Column], added: list[Column]) -> None:
    """Appending columns leaves the places of the earlier ones as they were."""
    taken = {column.name for column in before}
    old = compile_revision(before)
    new = compile_revision([*before, *(column for column in added if column.name not in taken)])

    expected = [] if not before else [old.dtype.fields[column.name][1] for column in before]  # type: ignore[index]
    actual = [] if not before else [new.dtype.fields[column.name][1] for column in before]  # type: ignore[index]
    assert expected == actual


def test_an_absent_row_reads_as_absent() -> None:
    """The template of the fixed columns gives the absent value that the contract names for each."""
    row = compile_revision(FIXED_COLUMNS).blank()[0]

    assert (-1, -1, 0, b"") == (row["input_length"], row["tokens"], row["label"], row["session"])
    assert np.isnan(row["confidence"])


def test_two_columns_of_one_name_are_refused() -> None:
    """A name stands for one column."""
    with pytest.raises(ValueError, match=r"already present|duplicate|more than once"):
        compile_revision([Column("a", "int"), Column("a", "float")])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "bool"),
        (np.bool_(True), "bool"),
        (3, "int"),
        (np.int32(3), "int"),
        (0.5, "float"),
        (np.float32(0.5), "float"),
        ("x", "str"),
        (None, None),
        (b"x", None),
        ([1], None),
        (1j, None),
    ],
)
def test_the_kind_of_an_attribute_follows_its_first_value(value: object, expected: str | None) -> None:
    """Bool, int, float and str, Python's or numpy's; nothing else can be stored."""
    assert expected == kind_of(value)
