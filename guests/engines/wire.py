"""As much of protobuf as a few calls need: numbered fields that are numbers, texts, or messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Message = Mapping[int, "Field"]
Field = int | str | Message | Sequence[str | Message]

VARINT, DELIMITED = 0, 2


def encode(message: Message) -> bytes:
    """The message as it is sent."""
    return b"".join(_fields(message))


def texts(pairs: Mapping[str, str]) -> Sequence[Message]:
    """What a map of texts is: one message for each pair."""
    return [{1: key, 2: value} for key, value in pairs.items()]


def first_text(answer: bytes, number: int) -> str:
    """The text in that field of a message; empty if it is not there."""
    place = 0
    while place < len(answer):
        key, place = _read(answer, place)
        value, place = _read(answer, place)
        if key & 7 == DELIMITED:
            if key >> 3 == number:
                return answer[place : place + value].decode()
            place += value
    return ""


def _fields(message: Message) -> Iterator[bytes]:
    for number, value in message.items():
        for each in value if isinstance(value, Sequence) and not isinstance(value, str) else (value,):
            if isinstance(each, int):
                yield _varint(number << 3 | VARINT) + _varint(each)
            else:
                content = each.encode() if isinstance(each, str) else encode(each)
                yield _varint(number << 3 | DELIMITED) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    sent = bytearray()
    while value > 0x7F:
        sent.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*sent, value))


def _read(answer: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = answer[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
