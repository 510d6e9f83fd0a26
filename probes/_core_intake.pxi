# SPDX-License-Identifier: Apache-2.0
# Part of _core.pyx: from an ASGI scope to a record, and back to a committed row.

cdef class IntakeCore:
    """Begins and finishes the records of one ring; see probes/intake.py."""

    cdef public object ring
    cdef public RingCore writer
    cdef public int64_t _wall_ns
    cdef public dict _methods, _devices
    cdef public object _method_other, _routes, _errors, _agents, _releases, _sessions, _baggage, _span_here
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
        cdef object agent = None, release = None, device = None, parent = None, session = None, baggage = None
        cdef uint64_t hi, lo, span_id, parent_id = 0, hashed
        for name, value in scope["headers"]:
            if PyBytes_CheckExact(name):
                size = PyBytes_GET_SIZE(name)
                if size != 7 and not 10 <= size <= 16:
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
                elif name == b"baggage":
                    baggage = value if baggage is None else baggage
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
        elif baggage is not None:
            carried = self._baggage[baggage]
            if carried is not None:
                number, session = carried
                hashed = number
                if session:
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
        # Again: what was allocated since may have run a finaliser or another thread that closed the ring. From here to the
        # last store nothing allocates.
        if core.base is NULL:
            raise ValueError("the ring is closed")
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
