"""Precompiled BPF objects through libbpf.so.1: load, attach, run, read maps; no compiler is needed.

Everything that can be missing (the library, the right, the kernel's type information, a kernel function)
ends in one exception, BpfUnavailable, whose text is one line for an operator.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import struct
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType

LIBRARY = "libbpf.so.1"
VMLINUX_BTF = "/sys/kernel/btf/vmlinux"
OBJECTS = Path(__file__).parent

_BPF_F_LINK = 1 << 13
"""Of a struct_ops map: what is attached goes with its link (Linux 6.4), so with the process that holds it."""

_BPF_F_SLEEPABLE = 1 << 4
_BPF_STRUCT_OPS = 44
_BPF_LINK_CREATE = 28
_SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine, 280)

_Pointer = ctypes.c_void_p


class BpfUnavailable(Exception):
    """BPF cannot be used here; the text says why, in one line."""


class _TestRunOpts(ctypes.Structure):
    """struct bpf_test_run_opts of libbpf 1.0 (bpf.h); only a `syscall` program's context is used."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", _Pointer),
        ("data_out", _Pointer),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", _Pointer),
        ("ctx_out", _Pointer),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError:
        raise BpfUnavailable(f"{LIBRARY} is not installed (Debian: apt-get install libbpf1)") from None
    for name in ("open_mem", "find_program_by_name", "find_map_by_name"):
        getattr(library, f"bpf_object__{name}").restype = _Pointer
    library.bpf_map__initial_value.restype = _Pointer
    library.bpf_map__attach_struct_ops.restype = _Pointer
    library.bpf_program__attach.restype = _Pointer
    library.libbpf_set_print(None)  # of what it tried and failed our one line says what follows
    return library


def version() -> tuple[int, int]:
    """Of libbpf. Raises BpfUnavailable."""
    return int(_library().libbpf_major_version()), int(_library().libbpf_minor_version())


class Program:
    """A `syscall` program: runs when asked, with a context that both sides read and write."""

    def __init__(self, descriptor: int, context: ctypes.Structure) -> None:
        self.context = context
        self._opts = _TestRunOpts(
            sz=ctypes.sizeof(_TestRunOpts),
            ctx_in=ctypes.addressof(context),
            ctx_size_in=ctypes.sizeof(context),
        )
        self._call = functools.partial(
            ctypes.PyDLL(LIBRARY).bpf_prog_test_run_opts, descriptor, ctypes.byref(self._opts)
        )

    def run(self) -> int:
        """Run it on the context; what it returned. Raises OSError if it could not run."""
        code = self._call()
        if code < 0:
            raise OSError(-code, f"a BPF program cannot run: {os.strerror(-code)}")
        return int(self._opts.retval)


class HashMap:
    """A hash map of fixed-size keys and values, read whole in one call."""

    def __init__(self, descriptor: int, key_bytes: int, value_bytes: int, entries: int) -> None:
        self._descriptor = descriptor
        self._key_bytes, self._value_bytes, self._entries = key_bytes, value_bytes, entries
        self._keys = ctypes.create_string_buffer(key_bytes * entries)
        self._values = ctypes.create_string_buffer(value_bytes * entries)
        self._next = ctypes.c_uint64()

    def read(self) -> tuple[memoryview, memoryview]:
        """All keys and all values, one behind the other, until the next read. Raises OSError."""
        count = ctypes.c_uint32(self._entries)
        code = _library().bpf_map_lookup_batch(
            self._descriptor,
            None,
            ctypes.byref(self._next),
            self._keys,
            self._values,
            ctypes.byref(count),
            None,
        )
        if code < 0 and code != -errno.ENOENT:  # ENOENT: that was all
            raise OSError(-code, f"bpf_map_lookup_batch: {os.strerror(-code)}")
        return (
            memoryview(self._keys)[: count.value * self._key_bytes].cast("B"),
            memoryview(self._values)[: count.value * self._value_bytes].cast("B"),
        )

    def drop(self, key: bytes) -> None:
        """Remove an entry, if it is there."""
        _library().bpf_map_delete_elem(self._descriptor, key)


class BpfObject:
    """One loaded object. Closing it detaches and unloads everything."""

    def __init__(self, image: bytes, name: str, handle: int) -> None:
        self._image = image
        self._name = name
        self._handle: int | None = handle
        self._links: dict[str, int] = {}
        self._maps: list[mmap.mmap] = []
        self._descriptors: dict[str, int] = {}

    def prepare(
        self,
        sizes: Mapping[str, int],
        without: Collection[str],
        options: ctypes.Structure | None,
        operations: str | None,
        sleepable: Collection[str],
    ) -> None:
        """What load() is told of it. Raises KeyError for a name that is not in it: libbpf would follow a null
        pointer."""
        library = _library()
        for name, entries in sizes.items():
            library.bpf_map__set_max_entries(self._map(name), ctypes.c_uint32(entries))
        for name in without:
            library.bpf_program__set_autoload(self._program(name), ctypes.c_bool(False))
        if options is not None:
            size = ctypes.c_size_t()
            place = library.bpf_map__initial_value(self._map(".rodata"), ctypes.byref(size))
            if size.value != ctypes.sizeof(options):
                raise ValueError(
                    f"{self._name} has {size.value} bytes of options, we {ctypes.sizeof(options)}"
                )
            ctypes.memmove(place, ctypes.byref(options), size.value)
        for name in sleepable:
            library.bpf_program__set_flags(self._program(name), ctypes.c_uint32(_BPF_F_SLEEPABLE))
        if operations is not None:
            library.bpf_map__set_map_flags(self._map(operations), ctypes.c_uint32(_BPF_F_LINK))

    def program(self, name: str, context: ctypes.Structure) -> Program:
        """The `syscall` program of that name, with its context."""
        return Program(_library().bpf_program__fd(self._program(name)), context)

    def attach(self, name: str) -> None:
        """Let the program run where its section says. Raises BpfUnavailable."""
        link = _library().bpf_program__attach(self._program(name))
        if not link:
            raise BpfUnavailable(f"the kernel does not let us attach {name}: {_why(ctypes.get_errno())}")
        self._links[name] = link

    def detach(self, name: str) -> None:
        """The program, or the operations, run no more, until they are attached again. Idempotent."""
        link, descriptor = self._links.pop(name, None), self._descriptors.pop(name, None)
        if link is not None:
            _library().bpf_link__destroy(_Pointer(link))
        if descriptor is not None:
            os.close(descriptor)

    def attach_operations(self, name: str) -> None:
        """Let the kernel call the operations (struct_ops) of that map, for as long as this process lives and
        the object is open. Raises BpfUnavailable."""
        operations = self._map(name)
        link = _library().bpf_map__attach_struct_ops(operations)
        if not link:
            raise BpfUnavailable(f"the kernel does not take {name}: {_why(ctypes.get_errno())}")
        descriptor = int(_library().bpf_map__fd(operations))
        if _library().bpf_link__fd(_Pointer(link)) != descriptor:
            self._links[name] = link
            return
        # libbpf before 1.2 fills the map, and knows no link of it.
        asked = struct.pack("=IIII", descriptor, 0, _BPF_STRUCT_OPS, 0).ljust(64, b"\0")
        made = _libc().syscall(_SYS_BPF, _BPF_LINK_CREATE, asked, len(asked))
        if made < 0:
            raise BpfUnavailable(f"the kernel does not take {name}: {_why(ctypes.get_errno())}")
        self._descriptors[name] = made

    def map_descriptor(self, name: str) -> int:
        """The descriptor of a map, for as long as the object is open."""
        return int(_library().bpf_map__fd(self._map(name)))

    def view(self, name: str, size: int, *, writable: bool = False) -> mmap.mmap:
        """The values of an array map that was made for it, as memory. Raises ValueError where they have
        another size than that: the kernel would show a part of them without a word."""
        found = self._map(name)
        there = _in_array(_library().bpf_map__value_size(found)) * _library().bpf_map__max_entries(found)
        if _in_array(size) != there:
            raise ValueError(f"{self._name} has {there} bytes of {name}, we {size}")
        rights = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        view = mmap.mmap(self.map_descriptor(name), size, mmap.MAP_SHARED, rights)
        self._maps.append(view)
        return view

    def close(self) -> None:
        """Detach, unload, free. Idempotent; views that are still exported stay readable."""
        if self._handle is None:
            return
        for name in (*self._links, *self._descriptors):
            self.detach(name)
        for view in self._maps:
            with contextlib.suppress(BufferError):
                view.close()
        _library().bpf_object__close(_Pointer(self._handle))
        self._handle = None
        self._maps.clear()

    def __enter__(self) -> BpfObject:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _map(self, name: str) -> ctypes.c_void_p:
        found = _library().bpf_object__find_map_by_name(_Pointer(self._handle), name.encode())
        if not found:
            raise KeyError(f"{self._name} has no map {name}")
        return _Pointer(found)

    def _program(self, name: str) -> ctypes.c_void_p:
        found = _library().bpf_object__find_program_by_name(_Pointer(self._handle), name.encode())
        if not found:
            raise KeyError(f"{self._name} has no program {name}")
        return _Pointer(found)


def load(
    name: str,
    *,
    sizes: Mapping[str, int],
    without: Collection[str] = (),
    options: ctypes.Structure | None = None,
    operations: str | None = None,
    sleepable: Collection[str] = (),
    folder: Path = OBJECTS,
) -> BpfObject:
    """The object `name`, loaded: maps with `sizes` entries, all programs but those in `without`, `options` as
    its constant data, `operations` as the map that attach_operations() is to take, of whose programs
    `sleepable` may sleep (libbpf before 1.2 knows no section that says so).

    Raises BpfUnavailable.
    """
    library = _library()
    if not os.path.exists(VMLINUX_BTF):
        raise BpfUnavailable(f"this kernel has no type information ({VMLINUX_BTF}; CONFIG_DEBUG_INFO_BTF)")
    image = _image(folder / f"{name}.bpf.o")
    handle = library.bpf_object__open_mem(image, ctypes.c_size_t(len(image)), None)
    if not handle:
        raise BpfUnavailable(f"libbpf cannot read {name}: {_why(ctypes.get_errno())}")
    loaded = BpfObject(image, name, handle)
    try:
        loaded.prepare(sizes, without, options, operations, sleepable)
    except BaseException:
        loaded.close()
        raise
    code = library.bpf_object__load(_Pointer(handle))
    if code < 0:
        loaded.close()
        why = _why(-code) + (_for_want_of_rights() if code == -errno.EINVAL else "")
        raise BpfUnavailable(f"the kernel refuses the BPF object {name}: {why}")
    return loaded


def _image(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BpfUnavailable(f"{path} cannot be read: {error.strerror}: install DASEC anew") from error


def _in_array(value_bytes: int) -> int:
    """What a value takes there (array_map_alloc() of kernel/bpf/arraymap.c)."""
    return -(-value_bytes // 8) * 8


def _for_want_of_rights() -> str:
    """libbpf before 1.4 looks among the kernel's modules for a weak symbol that the kernel has not, and takes
    it for an error where it may not."""
    first = ctypes.c_uint32()
    may_look = _library().bpf_btf_get_next_id(0, ctypes.byref(first)) == 0
    if may_look or ctypes.get_errno() != errno.EPERM or version() >= (1, 4):
        return ""
    return " (without CAP_SYS_ADMIN it takes libbpf 1.4; this is {}.{})".format(*version())


def _why(code: int) -> str:
    if code == errno.EPERM:
        return "needs the rights of root, or CAP_BPF and CAP_PERFMON"
    return os.strerror(code)
