"""TailBench's latency files: little-endian uint64 records, written when the run ends.

v0.9 writes (queue, service, sojourn) to lats.bin; TailBench++ writes (queue, service, sojourn, date, sojourn
at the network) to lats_CLIENT.bin. Neither has a header, so the format has to be told.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SAMPLE_WORDS = 3


@dataclass(frozen=True, slots=True)
class Format:
    """How one version of TailBench writes."""

    words: int
    pattern: str
    date: int | None = None
    """Position of the time of the request, CLOCK_REALTIME ns, in a record."""


FORMATS: Mapping[str, Format] = {
    "v0.9": Format(3, "lats.bin"),
    "plus": Format(5, "lats_*.bin", date=3),
}


@dataclass(frozen=True, slots=True)
class Requests:
    """What was measured of each request, in nanoseconds, in the order of the file."""

    samples: array[int]
    """queue, service, sojourn, one after the other."""
    dates: array[int]
    """Empty where the format has none."""

    @property
    def sojourns(self) -> array[int]:
        return self.samples[2::SAMPLE_WORDS]

    def first(self, count: int) -> Requests:
        """Those that were answered first, as TailBench itself ends with its last."""
        return Requests(self.samples[: count * SAMPLE_WORDS], self.dates[:count])

    @property
    def seconds(self) -> float | None:
        """From the first request to the last answer; None without dates."""
        if not self.dates:
            return None
        ends = map(int.__add__, self.dates, self.sojourns)
        return (max(ends) - min(self.dates)) / 1e9

    def offsets(self) -> array[int]:
        """The dates from the first on, ascending."""
        first = min(self.dates, default=0)
        return array("Q", sorted(date - first for date in self.dates))


def read(folder: Path, form: Format) -> Requests:
    """All files of a run. Raises ValueError, in one line, where there is nothing or something else."""
    files = sorted(folder.glob(form.pattern))
    if not files:
        raise ValueError(f"wrote no {form.pattern}")
    words = array("Q")
    for file in files:
        words.extend(_words(file, form))
    if not words:
        raise ValueError(f"{files[0].name} is empty: the measured part was never entered")
    columns = [words[column :: form.words] for column in range(SAMPLE_WORDS)]
    samples = array("Q", _interleaved(columns))
    return Requests(samples, words[form.date :: form.words] if form.date is not None else array("Q"))


def _words(file: Path, form: Format) -> array[int]:
    found = file.read_bytes()
    if len(found) % (8 * form.words):
        raise ValueError(
            f"{file.name}: {len(found)} bytes are no whole number of records of {8 * form.words}"
        )
    words = array("Q", found)
    if sys.byteorder == "big":
        words.byteswap()
    records = zip(*(words[column :: form.words] for column in range(SAMPLE_WORDS)), strict=True)
    if not all(_adds_up(*record) for record in records):
        raise ValueError(f"{file.name}: queue and service are not the sojourn: is it another format?")
    return words


def _adds_up(queue: int, service: int, sojourn: int) -> bool:
    """TailBench++ counts a late request from when its client came to it; then it may have no queue."""
    return queue + service == sojourn or (queue == 0 and service > sojourn)


def _interleaved(columns: list[array[int]]) -> Iterator[int]:
    for record in zip(*columns, strict=True):
        yield from record


def write(path: Path, words: array[int]) -> None:
    """As `dasec load` writes samples and arrivals."""
    if sys.byteorder == "big":
        words = array("Q", words)
        words.byteswap()
    path.write_bytes(words.tobytes())
