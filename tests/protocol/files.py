"""Files of the model: /proc, cgroup v1, a little of /sys and the state directory, by way of `os`.

Below this line is the machine, above it the real code. Whatever the model does not know raises
NotImplementedError, so that a new system call is seen and not passed over.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

from .machine import ALL_CPUS, Machine, Step, Task

CG, CPUSET, STATE = "/cg", "/cpuset", "/run/dasec"
_MOUNTS = "30 25 0:26 / {} rw shared:9 - cgroup cgroup rw,{}\n"

_QUOTA_FILES = ("cpu.cfs_quota_us", "cpu.cfs_period_us")

_now: list[Machine] = []
"""The machine that is acted on: one at a time, by `on`."""


def machine() -> Machine:
    """The present one."""
    return _now[-1]


class _Open(NamedTuple):
    path: str
    start: int
    """Of the thread or group that a descriptor belongs to; 0: the path alone counts."""
    at: int = 0


class Descriptors:
    """Open files of the process that acts. They go with it."""

    def __init__(self) -> None:
        self.open: dict[int, _Open] = {}


_descriptors: list[Descriptors] = []


@contextmanager
def on(one: Machine, descriptors: Descriptors) -> Iterator[None]:
    """System calls go to this machine, from a process with these open files."""
    _now.append(one)
    _descriptors.append(descriptors)
    try:
        yield
    finally:
        _now.pop()
        _descriptors.pop()


class _Path:
    """os.path, as far as it is asked."""

    dirname = staticmethod(os.path.dirname)

    @staticmethod
    def isdir(path: str) -> bool:
        return _group(path) in machine().groups

    exists = isdir


class Os:
    """The module `os`."""

    path = _Path()
    sysconf = staticmethod(os.sysconf)
    strerror = staticmethod(os.strerror)
    fsencode = staticmethod(os.fsencode)
    fsdecode = staticmethod(os.fsdecode)

    def __getattr__(self, name: str) -> int:
        if name.startswith(("O_", "SEEK_")):
            return int(getattr(os, name))
        raise NotImplementedError(f"the model has no os.{name}")

    def open(self, path: str, flags: int, mode: int = 0, *, dir_fd: int | None = None) -> int:
        table = _descriptors[-1]
        if dir_fd is not None:
            path = f"{_file(dir_fd).path}/{path}"
        start = 0
        if path.startswith("/proc/") and "/task/" in path:
            start = _thread(path).start
        elif path.startswith(f"{CG}/"):
            start = _ident(path)
        if not flags & os.O_DIRECTORY and not path.startswith((CG, STATE)):
            _content(path, start)
        number = next(one for one in count(1000) if one not in table.open)
        table.open[number] = _Open(path, start)
        return number

    def close(self, descriptor: int) -> None:
        del _descriptors[-1].open[descriptor]

    def read(self, descriptor: int, length: int) -> bytes:
        file = _file(descriptor)
        if file.at:
            return b""  # each file is read with one call, and then to its end
        part = _content(file.path, file.start)[:length]
        _descriptors[-1].open[descriptor] = file._replace(at=file.at + len(part))
        return part

    def pread(self, descriptor: int, length: int, offset: int) -> bytes:
        file = _file(descriptor)
        return _content(file.path, file.start)[offset : offset + length]

    def write(self, descriptor: int, data: bytes) -> int:
        from .memory import append

        file = _file(descriptor)
        if file.path.startswith(STATE):
            return append(machine(), file.path.rpartition("/")[2], data)
        _write(file.path, file.start, data.decode())
        return len(data)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        return self.write(descriptor, data)

    def ftruncate(self, descriptor: int, length: int) -> None:
        name = _file(descriptor).path.rpartition("/")[2]
        machine().files[name] = machine().files[name][:length]

    def listdir(self, path: str) -> list[str]:
        machine().step(Step("threads"))
        seen = [task for task in machine().tasks.values() if task.visible]
        match path.strip("/").split("/"):
            case ["proc"]:
                return [str(pid) for pid in {task.pid for task in seen}]
            case ["proc", pid, "task"]:
                found = [str(task.tid) for task in seen if task.pid == int(pid)]
                if not found:
                    raise FileNotFoundError(errno.ENOENT, path)
                return found
        raise NotImplementedError(path)

    def scandir(self, path: str) -> _Entries:
        return _Entries(path)

    def stat(self, path: str) -> _Stat:
        _ident(f"{path}/")
        return _Stat(2 + sum(1 for _ in _below(path)), _ident(f"{path}/"))

    def mkdir(self, path: str) -> None:
        machine().step(Step(f"directory {path}", True, "made"))
        if _group(path) in machine().groups:
            raise FileExistsError(errno.EEXIST, path)
        machine().make_group(_group(path), ours=True)

    def rmdir(self, path: str) -> None:
        machine().step(Step(f"directory {path}", True, "removed"))
        group = _group(path)
        if group not in machine().groups:
            raise FileNotFoundError(errno.ENOENT, path)
        if machine().members(group) or any(_below(path)):
            raise OSError(errno.EBUSY, path)
        del machine().groups[group]


class _Stat(NamedTuple):
    st_nlink: int
    st_ino: int
    st_mode: int = stat.S_IFDIR
    st_dev: int = 1


class _Entry(NamedTuple):
    name: str

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return True


class _Entries:
    """What os.scandir gives."""

    def __init__(self, path: str) -> None:
        self._names = [group.rpartition("/")[2] for group in _below(path)]

    def __enter__(self) -> Iterator[_Entry]:
        return map(_Entry, self._names)

    def __exit__(self, *_: object) -> None:
        return


def renamed(old: str, new: str) -> None:
    """An open file has another name now."""
    table = _descriptors[-1].open
    for number, file in table.items():
        if file.path == old:
            table[number] = file._replace(path=new)


def _group(path: str) -> str:
    return path.removeprefix(CG) or "/"


def _below(path: str) -> Iterator[str]:
    group = _group(path)
    return (one for one in machine().groups if one.rpartition("/")[0] == group)


def _ident(path: str) -> int:
    group = machine().groups.get(_group(path.rpartition("/")[0]))
    if group is None:
        raise FileNotFoundError(errno.ENOENT, path)
    return group.ident


def _file(descriptor: int) -> _Open:
    return _descriptors[-1].open[descriptor]


def _thread(path: str) -> Task:
    _, _, pid, _, tid, *_ = path.split("/")
    task = machine().tasks.get(int(tid))
    if task is None or not task.visible or task.pid != int(pid):
        raise FileNotFoundError(errno.ENOENT, path)
    return task


def _content(path: str, start: int) -> bytes:
    match path.strip("/").split("/"):
        case ["proc", "self", "mountinfo"]:
            return (_MOUNTS.format(CG, "cpu") + _MOUNTS.format(CPUSET, "cpuset")).encode()
        case ["proc", "stat"]:
            return b"cpu  0 0 0 0 0 0 0 0 0 0\n"
        case ["proc", tid, "status"]:
            try:
                return f"Name:\tx\nTgid:\t{machine().task_of(int(tid)).pid}\nVmPTE:\t4 kB\n".encode()
            except OSError as error:
                raise FileNotFoundError(errno.ENOENT, path) from error
        case ["proc", _, "task", tid, name]:
            return _of_thread(int(tid), name, start)
        case ["cpuset", "cpuset.effective_cpus"]:
            machine().step(Step("cpuset"))
            return ",".join(map(str, machine().cpuset)).encode()
        case ["sys", "devices", "system", "cpu", "online" | "possible"]:
            return ",".join(map(str, ALL_CPUS)).encode()
        case ["sys", *_]:
            return b""
        case ["cg", *_, name]:
            return _of_group(path, name, start)
    raise FileNotFoundError(errno.ENOENT, path)


def _of_thread(tid: int, name: str, start: int) -> bytes:
    machine().step(Step(f"life {tid}"))
    task = machine().tasks.get(tid)
    if task is None or not task.visible or task.start != start:
        raise ProcessLookupError(errno.ESRCH, "No such process")
    match name:
        case "stat":
            fields = ["0"] * 50
            fields[0] = "R" if machine().gives_birth(tid) else "S"
            fields[1] = str(task.parent or 1)
            fields[19], fields[38] = str(task.start), str(task.policy)
            return f"{tid} (x) {' '.join(fields)}\n".encode()
        case "schedstat":
            return b"0 0 0\n"
        case "cgroup":
            return f"2:cpuset:/\n1:cpu:{task.group}\n".encode()
        case "status":
            mask = machine().effective(machine().read(tid, "mask").mask)
            cpus = ",".join(map(str, mask))
            return f"Name:\tx\nTgid:\t{task.pid}\nCpus_allowed_list:\t{cpus}\n".encode()
    raise NotImplementedError(name)


def _of_group(path: str, name: str, start: int) -> bytes:
    one = machine()
    group = one.groups.get(_group(path.rpartition("/")[0]))
    if group is None or group.ident != start:
        raise OSError(errno.ENODEV, "No such device")
    if name == "tasks":
        one.step(Step("threads"))
        tids = one.members(_group(path.rpartition("/")[0]))
        return "".join(f"{tid}\n" for tid in tids if one.tasks[tid].visible).encode()
    if name == "cpu.shares":
        one.step(Step(f"weight {_group(path.rpartition('/')[0])}"))
        group.unread = False
        return str(group.weight).encode()
    if name == "cpu.stat":
        return b"throttled_time 0\n"
    one.step(Step(f"quota {_group(path.rpartition('/')[0])}"))
    group.quota_unread = group.quota_unread and name != _QUOTA_FILES[0]
    return str(group.quota[_QUOTA_FILES.index(name)]).encode()


def _write(path: str, start: int, text: str) -> None:
    one = machine()
    directory, _, name = path.rpartition("/")
    if name == "tasks":
        task = one.write(int(text), "group", _group(directory))
        if _group(directory) not in one.groups:
            raise OSError(errno.ENODEV, "No such device")
        task.group = _group(directory)
        return
    what = "quota" if name in _QUOTA_FILES else "weight"
    one.step(Step(f"{what} {_group(directory)}", True, f"{name} {text}"))
    group = one.groups.get(_group(directory))
    if group is None or group.ident != start:
        raise OSError(errno.ENODEV, "No such device")
    if name not in _QUOTA_FILES:
        group.raced = group.raced or group.unread
        group.weight = int(text)
        return
    group.quota_raced = group.quota_raced or group.quota_unread
    quota, period = group.quota
    group.quota = (int(text), period) if name == _QUOTA_FILES[0] else (quota, int(text))
