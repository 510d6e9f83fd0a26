# SPDX-License-Identifier: Apache-2.0
# Part of _core.pyx: where stages and attributes lie, and the ring that rows go to.

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
        revisions = tuple(self.plan.revisions)  # as they are now: packing may let another thread add one
        revision = revisions[-1]
        if len(revision.template) == len(row):
            self.template = revision.packer.pack(*row)
            self.revision = len(revisions) - 1
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
        cell.code = KINDS[cell.kind].code.encode()[0]
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
