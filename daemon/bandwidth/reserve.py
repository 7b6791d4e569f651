"""How much of a limit is kept for those that somebody waits for.

Their mean use over two seconds and a margin. A use that no chance explains is a step: the mean becomes it at
once, and forgets it slowly if it was none. Where the limit stopped them for long, be it in the first look,
nobody saw what they want: it is guessed until they use less and are not stopped for long. The reserve in
force is kept while it is within the band around the mean, because each write of a quota hands out a new one.
"""

from __future__ import annotations

from typing import NamedTuple

MEMORY_NS = 2_000_000_000
"""With a memory of 80 ms the reserve would follow each burst: arrivals by chance at 30 % of a core use 14 to
46 % of one in 80 ms."""

STEP_PERCENT = 200
"""Of the mean: a use above it, and 3 permille of the limit more, is a step. Three standard deviations
of arrivals by chance are 190 %."""

MARGIN_PERMILLE = 20
LEAST_PERMILLE, MOST_PERMILLE = 10, 24
"""Of the limit, above the mean: what a new reserve has, and what one in force may have. At 5 permille p99
was 17 ms, at 45 it was 6.6, where 6.0 is that without a limit (docs/measurements.md, "Limits and caps")."""


RUN_OF_LOOKS = 4
"""So many uses above the reserve in a row are none by chance, either: the mean becomes the least of them. One
that is above still is followed at once: who was stopped uses more as soon as it may."""

FIRST_WHOLE = 2
"""Of such a run: in the first look the step may lie in the middle."""

HIDDEN_PERCENT = 35
"""Of the limit: from such stops on the use says little of what they want. A step from 10 to 50 % of a core
stops for 37, from 20 to 70 % for 42; arrivals by chance at 30 % of one for 25 at most (docs/measurements.md,
"Limits and caps")."""

GUESS_PERCENT = 80
"""Of the limit: so much is guessed at most. Where the background gets nothing there are no caps."""

SEEN_PERCENT = 90
"""Of a reserve that was guessed: who uses less has made up for its stops, and wants what it uses."""


class Reserve(NamedTuple):
    """In millionths of a core: the mean use, what is reserved, and the least of the last uses, so many looks
    in a row, that were above it. `is_guess`: what they want was hidden by stops, and has not been seen."""

    mean_ppm: int
    kept_ppm: int
    least_above_ppm: int = 0
    above: int = 0
    is_guess: bool = False


class Use(NamedTuple):
    """In millionths of a core: what they used, for how long the limit stopped threads, over all CPUs, and
    what they could use at most while each of the others has the smallest cap."""

    ppm: int
    stopped_ppm: int
    most_ppm: int


def followed(before: Reserve | None, use: Use, limit_ppm: int, length_ns: int) -> Reserve:
    """The reserve after a period in which they used so much."""
    is_hidden = use.stopped_ppm * 100 > limit_ppm * HIDDEN_PERCENT
    if before is None:
        first = _anew(use.ppm, limit_ppm)
        return _guess(first, use, limit_ppm) if is_hidden else first
    above = before.above + 1 if use.ppm > before.kept_ppm else 0
    before = before._replace(above=above)
    if above >= FIRST_WHOLE and is_hidden:
        return _guess(before, use, limit_ppm)
    if not before.is_guess:
        return _seen(before, use.ppm, limit_ppm, length_ns)
    if is_hidden or use.ppm * 100 >= before.kept_ppm * SEEN_PERCENT:
        return before
    return _anew(max(before.mean_ppm, use.ppm), limit_ppm)


def _guess(before: Reserve, use: Use, limit_ppm: int) -> Reserve:
    """For those who may want all that they were stopped for. Who has a backlog uses a whole core where it
    can. A guess that followed that would leave the others no cap that a group can have, and so none."""
    guess_ppm = min(use.ppm + use.stopped_ppm, use.most_ppm, limit_ppm * GUESS_PERCENT // 100)
    kept_ppm = max(before.kept_ppm, _anew(guess_ppm, limit_ppm).kept_ppm)
    return before._replace(kept_ppm=kept_ppm, least_above_ppm=0, is_guess=True)


def _seen(before: Reserve, use_ppm: int, limit_ppm: int, length_ns: int) -> Reserve:
    """Where the use says what they want."""
    mean_ppm, kept_ppm, above = before.mean_ppm, before.kept_ppm, before.above
    least_ppm = min(use_ppm, before.least_above_ppm) if above > FIRST_WHOLE else use_ppm
    if above >= RUN_OF_LOOKS:
        return _anew(least_ppm if above == RUN_OF_LOOKS else use_ppm, limit_ppm)._replace(above=above)
    if use_ppm * 100 > mean_ppm * STEP_PERCENT + limit_ppm * 3 // 10:
        mean_ppm = use_ppm
    else:
        mean_ppm += (use_ppm - mean_ppm) * min(length_ns, MEMORY_NS) // MEMORY_NS
    spare_ppm = kept_ppm - mean_ppm
    if limit_ppm * LEAST_PERMILLE <= spare_ppm * 1000 <= limit_ppm * MOST_PERMILLE:
        return Reserve(mean_ppm, kept_ppm, least_ppm, above)
    return _anew(mean_ppm, limit_ppm)._replace(least_above_ppm=least_ppm, above=above)


def _anew(mean_ppm: int, limit_ppm: int) -> Reserve:
    return Reserve(mean_ppm, mean_ppm + limit_ppm * MARGIN_PERMILLE // 1000)
