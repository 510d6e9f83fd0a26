# SPDX-License-Identifier: Apache-2.0
# Part of _core.pyx: the messages of one request.

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
