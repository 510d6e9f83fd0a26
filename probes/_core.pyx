# cython: language_level=3, cdivision=True, auto_pickle=False, embedsignature=False
# SPDX-License-Identifier: Apache-2.0
"""The request path of the recorder, compiled: what probes/record.py, intake.py, writer.py and asgi.py do, on C numbers.

Those modules are the reference: where they and this file differ, this file is wrong. tests/probes runs on both, and
tests/probes/test_core.py compares the bytes. What needs no speed (plans, texts, journal, odd values) is called there.

Threads   nothing here lets go of the interpreter's lock between taking a sequence number and publishing its row.
Bounded   one block of a row's size per request in flight.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLong
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import os
import struct

from probes.layout import OPEN_SLOT, OPEN_SLOT_BYTES
from probes.plan import FIXED_INDEX, WIRE_INDEX
from probes.schema import OUTCOMES

cdef extern from "Python.h":
    bint PyLong_Check(object)
    double PyLong_AsDouble(object) except? -1.0
    bint PyBytes_CheckExact(object)
    int PyContextVar_Get(object var, PyObject* default, PyObject** value) except -1
    void Py_DECREF(PyObject*)

cdef extern from "_core_c.h" nogil:
    int64_t monotonic_ns()
    int64_t thread_cpu_ns()
    uint32_t row_crc(const unsigned char* data, size_t size)
    void publish_word(void* at, uint64_t word)

ctypedef packed struct Fixed:
    # The columns that every row has, and the two stages that every file has first.
    uint64_t seq, trace_hi, trace_lo, span_id, parent_span_id, start_unix_ns, session_hash
    char session[32]
    uint32_t method, client_release, device_type, agent_family
    uint64_t duration_ns, batch_id
    uint16_t http_status
    uint8_t outcome, flags
    int64_t input_length, tokens
    double confidence
    uint32_t route, model_version, label, reason, error_type
    uint64_t receive_start, receive_duration
    int64_t received_bytes
    uint64_t send_start, send_duration
    int64_t sent_bytes, first_body_ns

ctypedef packed struct OpenSlot:
    uint8_t state, stage
    char reserved[6]
    uint64_t ticket
    char ids[96]

cdef uint64_t NEVER = 0xFFFFFFFFFFFFFFFF
assert sizeof(OpenSlot) == OPEN_SLOT.size and OPEN_SLOT.size <= OPEN_SLOT_BYTES
assert tuple(FIXED_INDEX)[-1] == "error_type" and max(WIRE_INDEX.values()) == len(FIXED_INDEX) + len(WIRE_INDEX) - 1

cdef object CURRENT = None
cdef object coerce = None
cdef object WANTED = None
cdef object parse_traceparent = None
cdef uint8_t RECEIVING = 1, SENDING = 2
cdef uint8_t SESSION_GENERATED = 1, SAMPLED = 2, LOW_QUALITY = 4, PARENT_INSIDE = 16


def prepare(**names):
    """Take what the plain modules define: CURRENT, coerce, WANTED, parse_traceparent."""
    global CURRENT, coerce, WANTED, parse_traceparent
    CURRENT = names.get("CURRENT", CURRENT)
    coerce = names.get("coerce", coerce)
    WANTED = names.get("WANTED", WANTED)
    parse_traceparent = names.get("parse_traceparent", parse_traceparent)


def crc32(bytes data):
    """Return the CRC-32 of data as rows carry it; zlib's."""
    return row_crc(<const unsigned char*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef class Cell:
    """Where one attribute lies in a row's body."""

    cdef Py_ssize_t at, end
    cdef char code
    cdef object codes
    cdef str kind


cdef class Slot:
    """Where one stage lies in a row's body."""

    cdef object plain  # the plan's StageSlot
    cdef uint8_t number
    cdef Py_ssize_t start, duration, cpu, end
    cdef dict cells


cdef class RingCore:
    """What the request path needs of a RingWriter, which is derived from it and keeps its state here."""

    cdef public list _free
    cdef public Py_ssize_t scratch
    cdef public uint64_t _next, _ticket, open_overflow
    cdef public object plan, count
    cdef unsigned char* base
    cdef Py_buffer view
    cdef Py_ssize_t ring_at, hashes_at, row_bytes
    cdef uint64_t ring_rows
    cdef dict slots
    cdef Slot request
    cdef object template_row
    cdef bytes template
    cdef uint16_t revision

    def __dealloc__(self):
        if self.base is not NULL:
            PyBuffer_Release(&self.view)

    def map_core(self, buffer, layout):
        """Take the mapping; called once the plan is there."""
        if layout.row_bytes - 16 < sizeof(Fixed):
            raise ValueError("a row is smaller than its fixed columns")
        PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE)
        self.base = <unsigned char*>self.view.buf
        self.ring_at, self.hashes_at = layout.ring, layout.hashes
        self.row_bytes, self.ring_rows = layout.row_bytes, layout.ring_rows
        self.slots = {}
        self.follow()
        self.request = self.mirror(self.plan.request)
        for name in self.plan.request.places:
            self.cell(self.request, name)

    def unmap_core(self):
        """Give the mapping back; requests still in flight are not written any more."""
        if self.base is not NULL:
            self.base = NULL
            PyBuffer_Release(&self.view)

    cdef follow(self):
        """Use the plan's newest revision for rows that begin from now on."""
        row = self.plan.template
        revision = self.plan.revisions[-1]
        if len(revision.template) == len(row):
            self.template = revision.packer.pack(*row)
            self.revision = len(self.plan.revisions) - 1
            self.template_row = row

    cdef Slot mirror(self, plain):
        """Return the places of one of the plan's stages, or of its request."""
        cdef Slot slot = Slot.__new__(Slot)
        slot.plain = plain
        slot.cells = {}
        slot.number = plain.number
        slot.cpu = -1
        if plain is not self.plan.request:
            revision = self.plan.revisions[-1]
            fields = revision.dtype.fields
            slot.start = fields[f"{plain.name}/start_ns"][1]
            slot.duration = fields[f"{plain.name}/duration_ns"][1]
            slot.end = slot.duration + 8
            if plain.cpu is not None:
                slot.cpu = fields[f"{plain.name}/cpu_ns"][1]
                slot.end = max(slot.end, slot.cpu + 8)
            self.slots[plain.name] = slot
        return slot

    cdef Cell cell(self, Slot slot, name):
        """Return where the plan has put an attribute."""
        cdef Cell cell = Cell.__new__(Cell)
        index, cell.codes = slot.plain.places[name]
        revision = self.plan.revisions[-1]
        column = revision.columns[index]
        cell.kind = column.kind
        packed, cell.at = revision.dtype.fields[column.name][:2]
        cell.end = cell.at + packed.itemsize
        cell.code = {"u8": b"B", "bool": b"B", "u16": b"H", "str": b"I", "u64": b"Q", "start": b"Q", "float": b"d"}.get(cell.kind, b"q")[0]
        slot.cells[name] = cell
        return cell

    cdef int commit_record(self, Record record, Py_ssize_t at) except -1:
        """Write a row; see RingWriter.commit."""
        if record.odd is not None:
            record.settle()
        if self.base is NULL:
            raise ValueError("the ring is closed")
        cdef uint64_t sequence = self._next
        cdef Py_ssize_t index = <Py_ssize_t>(sequence % self.ring_rows)
        cdef unsigned char* row = self.base + self.ring_at + index * self.row_bytes
        cdef uint32_t crc
        cdef uint16_t length = <uint16_t>record.length
        record.fixed.seq = sequence
        crc = row_crc(record.body, record.length)
        memcpy(row + 8, &crc, 4)
        memcpy(row + 12, &record.revision, 2)
        memcpy(row + 14, &length, 2)
        memcpy(row + 16, record.body, record.length)
        memcpy(self.base + self.hashes_at + index * 8, &record.fixed.session_hash, 8)
        # Last, and one aligned store: whoever sees this word sees the row.
        publish_word(row, sequence + 1)
        self._next = sequence + 1
        if at != self.scratch:
            self.base[at] = 0
            self._free.append(at)
        return 0


@cython.freelist(16)
cdef class Record:
    """The row of one request in flight; see probes/record.py."""

    cdef readonly RingCore writer
    cdef readonly int64_t started_ns
    cdef readonly Py_ssize_t slot
    cdef unsigned char* body
    cdef Fixed* fixed
    cdef Py_ssize_t length
    cdef uint16_t revision
    cdef dict odd  # values that their column cannot take as they are; judged at the end, as the plain core does

    def __init__(self):
        raise TypeError("records are made by a recorder")  # one without a body must not be had

    def __dealloc__(self):
        PyMem_Free(self.body)

    def stage(self, name, /, **attributes):
        """Start a stage of this request, from any thread or task."""
        return enter(self, name, attributes)

    def set(self, **attributes):
        """Set attributes of the request itself."""
        try:
            self.write(self.writer.request, attributes)
        except Exception:
            self.writer.count("record_set")

    def degraded(self, reason):
        """Say that the answer is a degraded one."""
        self.set(outcome="degraded", reason=reason)

    def refused(self, reason):
        """Say why the request is refused."""
        self.set(outcome="refused", reason=reason)

    def low_quality(self):
        """Mark the request's input as one of low quality."""
        self.fixed.flags |= LOW_QUALITY

    def in_batch(self, number):
        """Say in which batch the request is, unless that is known."""
        cdef Cell cell = self.writer.request.cells["batch_id"]
        if self.fixed.batch_id == 0 and not (self.odd is not None and self.odd.get(cell)):
            self.set(batch_id=number)

    @property
    def row(self):
        """The values so far, one per column, unpacked; a copy."""
        return list(self.writer.plan.revisions[self.revision].packer.unpack_from(PyBytes_FromStringAndSize(<char*>self.body, self.length)))

    @property
    def trace_id(self):
        """The trace id as 32 hex digits."""
        return f"{self.fixed.trace_hi:016x}{self.fixed.trace_lo:016x}"

    @property
    def session(self):
        """The session id that the row carries: the client's, or the generated one."""
        return PyBytes_FromStringAndSize(self.fixed.session, 32).rstrip(b"\0").decode("ascii", "replace") or self.trace_id

    @property
    def outcome(self):
        """The outcome so far."""
        return OUTCOMES[self.fixed.outcome]

    cdef int grow(self) except -1:
        """Extend a row that was begun under an older revision to the newest one."""
        cdef RingCore core = self.writer
        if core.template_row is not core.plan.template:
            core.follow()
        cdef Py_ssize_t length = PyBytes_GET_SIZE(core.template)
        if length > self.length:
            memcpy(self.body + self.length, PyBytes_AS_STRING(core.template) + self.length, length - self.length)
            self.length = length
            self.revision = core.revision
        return 0

    cdef int put(self, Cell cell, object value) except -1:
        """Store one value; one that does not fit as it is waits until the end."""
        cdef unsigned char* at = self.body + cell.at
        cdef PyObject* known
        cdef int overflow = 0
        cdef int64_t whole
        cdef uint64_t natural
        cdef double real
        if cell.end > self.length:
            self.grow()
            if cell.end > self.length:
                raise IndexError("the row has no such column")
        if cell.codes is not None:
            known = PyDict_GetItemWithError(cell.codes, value)
            value = <object>known if known is not NULL else cell.codes[value]
        if cell.code == b"d":
            if PyFloat_Check(value):
                real = PyFloat_AS_DOUBLE(value)
            elif PyLong_Check(value):
                try:
                    real = PyLong_AsDouble(value)
                except OverflowError:
                    return self.keep_odd(cell, value)
            else:
                return self.keep_odd(cell, value)
            memcpy(at, &real, 8)
        elif not PyLong_Check(value):
            return self.keep_odd(cell, value)
        elif cell.code == b"Q":
            try:
                natural = PyLong_AsUnsignedLongLong(value)
            except OverflowError:
                return self.keep_odd(cell, value)
            memcpy(at, &natural, 8)
        else:
            whole = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow:
                return self.keep_odd(cell, value)
            if cell.code == b"q":
                memcpy(at, &whole, 8)
            elif whole < 0 or whole >= (1LL << (8 * (cell.end - cell.at))):
                return self.keep_odd(cell, value)
            else:
                memcpy(at, &whole, cell.end - cell.at)  # little endian: its lowest bytes
        if self.odd is not None:
            self.odd.pop(cell, None)
        return 0

    cdef int keep_odd(self, Cell cell, value) except -1:
        if self.odd is None:
            self.odd = {}
        self.odd[cell] = value
        return 0

    cdef int settle(self) except -1:
        """Store what odd values come to: coerced, or absent and counted."""
        cdef Cell cell
        cdef bytes packed
        odd, self.odd = self.odd, None
        for cell, value in odd.items():
            held, whole = coerce(value, cell.kind)
            if not whole:
                self.writer.count("attribute_value")
            packed = struct.pack(b"<" + bytes([cell.code]), held)
            memcpy(self.body + cell.at, PyBytes_AS_STRING(packed), cell.end - cell.at)
        return 0

    cdef int write(self, Slot slot, dict attributes) except -1:
        """Write attribute values to their columns, making columns that are missing."""
        cdef PyObject* name
        cdef PyObject* value
        cdef PyObject* cell
        cdef Py_ssize_t position = 0
        cdef dict cells = slot.cells
        try:
            while PyDict_Next(attributes, &position, &name, &value):
                if <object>value is not None:
                    cell = PyDict_GetItemWithError(cells, <object>name)
                    if cell is NULL:
                        return self.write_carefully(slot, attributes)
                    self.put(<Cell>cell, <object>value)
        except Exception:
            return self.write_carefully(slot, attributes)
        return 0

    cdef int write_carefully(self, Slot slot, dict attributes) except -1:
        """Write one by one what could not be written together; what cannot be written at all is counted."""
        cdef RingCore core = self.writer
        cdef Cell cell
        for name, value in attributes.items():
            if value is None:
                continue
            found = slot.cells.get(name)
            if found is None:
                if name not in slot.plain.places and not core.plan.attribute(slot.plain, name, value):
                    continue
                found = core.cell(slot, name)
            cell = found
            try:
                self.put(cell, value)
            except Exception:
                core.count("attribute_value")
        return 0


@cython.freelist(16)
cdef class Stage:
    """A stage of one record that runs from the call that names it to the end of its with block."""

    cdef Record record
    cdef Slot slot
    cdef int64_t start_ns, cpu_ns

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        cdef Record record = self.record
        cdef int64_t spent
        cdef uint64_t total
        if record is None:
            return
        spent = monotonic_ns() - self.start_ns
        memcpy(&total, record.body + self.slot.duration, 8)
        total += <uint64_t>spent
        memcpy(record.body + self.slot.duration, &total, 8)
        if self.slot.cpu >= 0:
            memcpy(&total, record.body + self.slot.cpu, 8)
            total += <uint64_t>(thread_cpu_ns() - self.cpu_ns)
            memcpy(record.body + self.slot.cpu, &total, 8)

    def set(self, **attributes):
        """Set attributes of this stage while it runs."""
        if self.record is not None:
            try:
                self.record.write(self.slot, attributes)
            except Exception:
                self.record.writer.count("stage_set")


cdef Stage NO_STAGE = Stage.__new__(Stage)


cdef Stage enter(Record record, object name, dict attributes):
    """Start a stage of a record."""
    cdef RingCore core = record.writer
    cdef PyObject* known
    cdef Slot slot
    try:
        known = PyDict_GetItemWithError(core.slots, name)
        if known is not NULL:
            slot = <Slot>known
        else:
            plain = core.plan.stage(name, attributes)
            if plain is None:
                return NO_STAGE
            slot = core.mirror(plain)
        if slot.end > record.length:
            record.grow()
            if slot.end > record.length:
                raise IndexError("the row has no such stage")
        if attributes:
            record.write(slot, attributes)
        return start(record, slot)
    except Exception:
        core.count("stage")
        return NO_STAGE


cdef Stage start(Record record, Slot slot):
    cdef RingCore core = record.writer
    cdef uint64_t began
    if core.base is NULL:
        raise ValueError("the ring is closed")
    core.base[record.slot + 1] = slot.number
    cdef Stage running = Stage.__new__(Stage)
    running.record = record
    running.slot = slot
    if slot.cpu >= 0:
        running.cpu_ns = thread_cpu_ns()
    running.start_ns = monotonic_ns()
    memcpy(&began, record.body + slot.start, 8)
    if began == NEVER:
        began = <uint64_t>(running.start_ns - record.started_ns)
        memcpy(record.body + slot.start, &began, 8)
    return running


def stage(name, /, **attributes):
    """Start measuring a part of the current request; it ends with the with block around it."""
    cdef PyObject* found = NULL
    PyContextVar_Get(CURRENT, NULL, &found)
    if found is NULL:  # cannot be: it has a default
        return NO_STAGE
    record = <object>found
    Py_DECREF(found)
    return NO_STAGE if record is None else enter(<Record?>record, name, attributes)


cdef class IntakeCore:
    """Begins and finishes the records of one ring; see probes/intake.py."""

    cdef public object ring
    cdef public RingCore writer
    cdef public int64_t _wall_ns
    cdef public dict _methods, _devices
    cdef public object _method_other, _routes, _errors, _agents, _releases, _sessions, _span_here
    cdef uint64_t random[2]

    def __cinit__(self, *args, **kwargs):
        memcpy(self.random, PyBytes_AS_STRING(<bytes>os.urandom(16)), 16)
        self.random[0] |= 1  # all zeros would stay zeros

    cdef uint64_t draw(self) noexcept:
        # xorshift128+ (Vigna 2014): ids must differ, nobody must not guess them.
        cdef uint64_t a = self.random[0], b = self.random[1]
        self.random[0] = b
        a ^= a << 23
        self.random[1] = a ^ b ^ (a >> 17) ^ (b >> 26)
        return self.random[1] + b

    def begin(self, scope):
        """Return the record of a request that starts now."""
        cdef int64_t started_ns = monotonic_ns()
        cdef RingCore core = self.writer
        cdef Record record
        cdef Fixed* fixed
        cdef OpenSlot* opened
        cdef Py_ssize_t at, size
        cdef uint8_t flags = SESSION_GENERATED
        cdef object agent = None, release = None, device = None, parent = None, session = None
        cdef uint64_t hi, lo, span_id, parent_id = 0, hashed
        for name, value in scope["headers"]:
            if PyBytes_CheckExact(name) and not 10 <= PyBytes_GET_SIZE(name) <= 16:
                continue
            if name in WANTED:  # of a repeated one, the first counts
                if name == b"user-agent":
                    agent = value if agent is None else agent
                elif name == b"x-client-release":
                    release = value if release is None else release
                elif name == b"x-device-type":
                    device = value if device is None else device
                elif name == b"traceparent":
                    parent = value if parent is None else parent
                else:
                    session = value if session is None else session
        hi, lo, span_id = self.draw(), self.draw(), self.draw()
        agent = self._agents[agent] if agent else 0
        release = self._releases[release] if release else 0
        device = self._devices.get(device, 0) if device else 0
        if parent:
            upstream = parse_traceparent(parent)
            if upstream is not None:
                trace, parent_id, sampled = upstream
                hi, lo = trace >> 64, trace & 0xFFFFFFFFFFFFFFFF
                flags |= SAMPLED if sampled else 0
        if self._span_here is not None:
            here = self._span_here()
            if here is not None:
                # It has the caller's trace if there was one, and lies between the caller and us.
                trace, parent_id, sampled = here
                hi, lo = trace >> 64, trace & 0xFFFFFFFFFFFFFFFF
                flags = SESSION_GENERATED | PARENT_INSIDE | (SAMPLED if sampled else 0)
        hashed = lo
        if session is not None:
            number, valid = self._sessions[session]
            hashed = number
            if valid:
                flags &= ~SESSION_GENERATED
            else:
                session = None
        method = self._methods.get(scope["method"], self._method_other)
        if core.base is NULL:
            raise ValueError("the ring is closed")
        if core.template_row is not core.plan.template:
            core.follow()
        record = Record.__new__(Record)
        record.body = <unsigned char*>PyMem_Malloc(core.row_bytes)
        if record.body is NULL:
            raise MemoryError
        record.writer = core
        record.started_ns = started_ns
        record.revision = core.revision
        record.length = PyBytes_GET_SIZE(core.template)
        memcpy(record.body, PyBytes_AS_STRING(core.template), record.length)
        record.fixed = fixed = <Fixed*>record.body
        fixed.trace_hi, fixed.trace_lo, fixed.span_id, fixed.parent_span_id = hi, lo, span_id, parent_id
        fixed.start_unix_ns = <uint64_t>(started_ns + self._wall_ns)
        fixed.session_hash = hashed
        if session is not None:
            memcpy(fixed.session, PyBytes_AS_STRING(<bytes?>session), min(32, PyBytes_GET_SIZE(session)))
        fixed.method, fixed.client_release, fixed.device_type, fixed.agent_family = method, release, device, agent
        fixed.flags = flags
        if core._free:
            at = core._free.pop()
        else:
            core.open_overflow += 1
            at = core.scratch
        record.slot = at
        core._ticket += 1
        opened = <OpenSlot*>(core.base + at)
        opened.state = 0
        opened.stage = 0
        memset(opened.reserved, 0, 6)
        opened.ticket = core._ticket
        memcpy(opened.ids, &fixed.trace_hi, sizeof(opened.ids))
        opened.state = 1  # last: a slot that a kill left half-written is a free one
        return record

    def finish(self, Record record not None, scope, status, disconnected):
        """Commit the row of a request that has ended."""
        cdef RingCore core = record.writer
        cdef Fixed* fixed = record.fixed
        cdef Py_ssize_t slot = record.slot
        record.slot = core.scratch  # a thread that goes on must not mark another's slot
        try:
            if fixed.duration_ns == 0:
                fixed.duration_ns = <uint64_t>(monotonic_ns() - record.started_ns)
            record.put(STATUS, status)
            if fixed.route == 0:
                try:
                    route = scope.get("route")
                    path = getattr(route, "path_format", None) or getattr(route, "path", None) or "(unmatched)"
                    fixed.route = self._routes[path]
                except Exception:
                    core.count("route")
                    fixed.route = self._routes["(unmatched)"]
            if fixed.outcome == 0:
                fixed.outcome = 4 if disconnected else 0 if status < 400 else 1 if status < 500 else 2
            core.commit_record(record, slot)
        except BaseException:
            core.release(slot)
            raise

    def fail(self, Record record not None, error, answered):
        """Write down that the app raised."""
        if not answered:
            record.fixed.outcome = 2
        record.fixed.error_type = self._errors[type(error).__name__]


cdef Cell STATUS = Cell.__new__(Cell)
STATUS.kind, STATUS.code = "u16", b"H"
STATUS.at = 8 * 7 + 32 + 16 + 16
STATUS.end = STATUS.at + 2


@cython.freelist(16)
cdef class Exchange:
    """Watches the messages of one request on their way in and out; see probes/asgi.py."""

    cdef Record record
    cdef object _receive, _send
    cdef public object status
    cdef public bint complete, disconnected
    cdef bint body_complete
    cdef int64_t body_bytes, sent_bytes

    def __init__(self, Record record not None, receive, send):
        self.record = record
        self._receive = receive
        self._send = send
        self.status = 0

    async def receive(self):
        cdef int64_t entered
        cdef Fixed* fixed
        if self.body_complete:
            message = await self._receive()
        else:
            entered = monotonic_ns()
            fixed = self.record.fixed
            if fixed.receive_start == NEVER:
                fixed.receive_start = <uint64_t>(entered - self.record.started_ns)
                if not self.status:  # an app that answers already only listens whether its client leaves
                    self.reach(RECEIVING)
            message = await self._receive()
            fixed.receive_duration += <uint64_t>(monotonic_ns() - entered)
            if message["type"] == "http.request":
                self.body_bytes += len(message.get("body") or b"")
                self.body_complete = not message.get("more_body", False)
                fixed.received_bytes = self.body_bytes
        if message["type"] == "http.disconnect" and not self.complete:
            self.disconnected = True
        return message

    def send(self, message):
        cdef int64_t before
        kind = message["type"]
        if kind == "http.response.body":
            before = self.sent_bytes
            self.sent_bytes = before + len(message.get("body") or b"")
            if not message.get("more_body", False):
                return self.send_last(message)
            if before == 0 and self.sent_bytes:
                self.record.fixed.first_body_ns = monotonic_ns() - self.record.started_ns
        elif kind == "http.response.start":
            self.status = message.get("status", 0)
            self.record.fixed.send_start = <uint64_t>(monotonic_ns() - self.record.started_ns)
            self.reach(SENDING)
        elif kind == "http.response.pathsend":
            return self.send_last(message)
        return self._send(message)

    cdef int reach(self, uint8_t stage) except -1:
        """Say in the open slot where the request stands."""
        cdef RingCore core = self.record.writer
        if core.base is NULL:  # the ring was closed under the request, which goes on
            core.count("open_slot")
        else:
            core.base[self.record.slot + 1] = stage
        return 0

    async def send_last(self, message):
        cdef Fixed* fixed
        await self._send(message)
        self.complete = True
        fixed = self.record.fixed
        # The request ends here: what the app does afterwards, such as background tasks, nobody waits for.
        fixed.duration_ns = <uint64_t>(monotonic_ns() - self.record.started_ns)
        fixed.send_duration = fixed.duration_ns - fixed.send_start
        fixed.sent_bytes = self.sent_bytes
