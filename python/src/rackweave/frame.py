"""Results as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._native import Stream


class Frame:
    """A table of results, which any library takes that knows the Arrow PyCapsule interface.

    `polars.DataFrame(frame)`, `pandas.DataFrame.from_arrow(frame)` and `pyarrow.table(frame)` work,
    and DuckDB selects from it by the name of its variable. Values are not copied on the way. Rows
    are read when they are taken, so a frame larger than memory can be streamed.
    """

    def __init__(self, stream: Stream, holder: object = None) -> None:
        self._stream = stream
        # A temporary folder lives as long as what reads it.
        self._holder = holder

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._stream.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._stream.units]

    @property
    def units(self) -> dict[str, str]:
        """The units of the columns that have one. Arrow's fields have them as metadata too."""
        return {name: unit for name, unit in self._stream.units if unit is not None}

    def to_polars(self) -> polars.DataFrame:
        """The table for Polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table for pandas."""
        import pandas

        return pandas.DataFrame.from_arrow(self)

    def to_arrow(self) -> pyarrow.Table:
        """The table for PyArrow; its schema has the units as metadata of fields."""
        import pyarrow

        return pyarrow.table(self)

    def __repr__(self) -> str:
        return f"<rackweave.Frame of {len(self.columns)} columns>"


def charts(drawings: list[tuple[str, str]]) -> dict[str, Any]:
    """Specifications of Vega-Lite as charts of Altair, by name."""
    import json

    import altair

    return {name: altair.Chart.from_dict(json.loads(text)) for name, text in drawings}
