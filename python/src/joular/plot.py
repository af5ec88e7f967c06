"""Draws charts by matplotlib: power over time, methods with their intervals, two selections beside each other."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from joular.table import harmless, needed, short

if TYPE_CHECKING:
    from joular.dataset import DataSet

# More buckets than this are not told apart.
_BUCKETS = 200


class Plots:
    """Charts of a selection. Each returns matplotlib's Axes; `ax` draws into given ones."""

    def __init__(self, data: DataSet) -> None:
        self._data = data

    def power(self, every: float | None = None, top: int = 8, ax: Any = None) -> Any:
        """Watts of processes by their names, stacked over time: of `every` so many seconds, or as finely as it fits."""
        ax = _axes(ax)
        rows = self._data.power(every or self._seconds(), by="command").to_pylist()
        joules: dict[str, float] = {}
        for row in rows:
            joules[row["command"]] = joules.get(row["command"], 0.0) + row["watts"] * row["seconds"]
        ranked = sorted(joules, key=lambda name: (-joules[name], name))
        shown = [*ranked[:top], *(["others"] if len(ranked) > top else [])]
        height: dict[Any, float] = {}
        for name in shown:
            here = [row for row in rows if (row["command"] if row["command"] in ranked[:top] else "others") == name]
            starts = [row["start"] for row in here]
            bottoms = []
            for row in here:
                place = (row["run_id"], row["start"])
                bottoms.append(height.get(place, 0.0))
                height[place] = bottoms[-1] + row["watts"]
            days = [row["seconds"] / 86_400 for row in here]
            ax.bar(starts, [row["watts"] for row in here], days, bottom=bottoms, align="edge", label=short(name))
        _titled(ax, self._data.title("Power by process"), "time (UTC)", "power (W)")
        ax.tick_params(axis="x", rotation=30)
        ax.margins(y=0.2)
        return _with_legend(ax) if shown else ax

    def methods(self, top: int = 15, java: bool = True, ax: Any = None) -> Any:
        """Self energy of methods, largest first, with 95 % intervals."""
        ax = _axes(ax)
        rows = self._data.methods(per="all", java=java).head(top).to_pylist()
        _bars(ax, [short(row["method"]) for row in rows], [_bar(row, 1) for row in rows], 0.0, 0.8, None)
        _titled(
            ax, self._data.title("Methods by self energy"), "self energy (J), with the 95 % interval of sampling", ""
        )
        return ax

    def compare(self, other: DataSet, top: int = 15, java: bool = True, ax: Any = None) -> Any:
        """Self energy of methods of this and of another selection, joules per recording, with 95 % intervals.

        It shows, and does not judge: `joular-bpf diff` says whether a difference is more than chance.
        """
        ax = _axes(ax)
        sides = [self._data, other]
        by_method = [
            {_key(row): _bar(row, data.recordings) for row in data.methods(per="all", java=java).to_pylist()}
            for data in sides
        ]
        largest = {key: max(side.get(key, _NOTHING)[0] for side in by_method) for side in by_method for key in side}
        keys = sorted(largest, key=lambda key: (-largest[key], str(key)))[:top]
        names = [short(method) for method, *_ in keys]
        for place, (side, data) in enumerate(zip(by_method, sides)):
            label = f"{data.name} ({_count(data.recordings, 'recording')})"
            _bars(ax, names, [side.get(key, _NOTHING) for key in keys], 0.2 - 0.4 * (1 - place), 0.4, label)
        origins = " and ".join(dict.fromkeys(data.origin for data in sides))
        title = f"Methods by self energy: {self._data.name} and {other.name}, {origins}"
        _titled(ax, title, "self energy (J per recording), with the 95 % interval of sampling", "")
        return _with_legend(ax)

    def _seconds(self) -> float | None:
        windows = self._data._rows.windows
        starts = windows.column("window_start").to_pylist()
        seconds = (max(starts) - min(starts)).total_seconds() if starts else 0.0
        return None if len(starts) <= _BUCKETS else seconds / _BUCKETS


# Joules and the ends of their interval. Of what was not seen, nothing is known of its interval.
Bar = tuple[float, float, float]
_NOTHING: Bar = (0.0, nan, nan)


def _bar(row: dict[str, Any], recordings: int) -> Bar:
    joules, low, high = (row[f"self_{name}joules"] / recordings for name in ("", "low_", "high_"))
    return joules, low, high


def _bars(ax: Any, names: list[str], bars: list[Bar], offset: float, height: float, label: str | None) -> None:
    places = range(len(bars))
    errors = [[joules - low for joules, low, _ in bars], [high - joules for joules, _, high in bars]]
    ax.barh([place + offset for place in places], [bar[0] for bar in bars], height, xerr=errors, capsize=2, label=label)
    # Dollars in names of lambdas are not mathematics.
    ax.set_yticks(list(places), names, parse_math=False, fontsize="small")
    if not ax.yaxis_inverted():
        ax.invert_yaxis()


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["method"], row["class"], row["signature"], row["module"])


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    _, axes = needed("matplotlib.pyplot", "plot").subplots(figsize=(10, 6), layout="constrained")
    return axes


def _titled(ax: Any, title: str, x: str, y: str) -> None:
    ax.set_title(harmless(title), parse_math=False)
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def _with_legend(ax: Any) -> Any:
    for text in ax.legend(fontsize="small").get_texts():
        text.set_parse_math(False)
    return ax
