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
from probes.schema import KINDS, OUTCOMES

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


include "_core_ring.pxi"
include "_core_record.pxi"
include "_core_intake.pxi"
include "_core_exchange.pxi"
