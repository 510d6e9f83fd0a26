# SPDX-License-Identifier: Apache-2.0
# Part of _core.pyx: one request's row while it is filled, and its stages.

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
        packed = PyBytes_FromStringAndSize(<char*>self.body, self.length)
        return list(self.writer.plan.revisions[self.revision].packer.unpack_from(packed))

    @property
    def trace_id(self):
        """The trace id as 32 hex digits."""
        return f"{self.fixed.trace_hi:016x}{self.fixed.trace_lo:016x}"

    @property
    def session(self):
        """The session id that the row carries: the client's, or the generated one."""
        packed = PyBytes_FromStringAndSize(self.fixed.session, 32)
        return packed.rstrip(b"\0").decode("ascii", "replace") or self.trace_id

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
