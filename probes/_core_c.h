/* The few things that Cython cannot say: clocks, the CRC of a row, and the store that publishes it. */
#include <stdint.h>
#include <string.h>
#include <time.h>

#ifndef CORE_SOURCE
#define CORE_SOURCE ""
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rows are little endian; this machine keeps the interpreted core"
#endif

/* Python's perf_counter on Linux reads the same clock. */
static inline int64_t monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t thread_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Release: the row's bytes are visible before its word is. */
static inline void publish_word(void *at, uint64_t word) {
    __atomic_store_n((uint64_t *)at, word, __ATOMIC_RELEASE);
}

/* CRC-32 as zlib computes it (polynomial 0xEDB88320), four bytes at a time: tables of 4 KiB stay in the cache. */
static uint32_t crc_table[4][256];

static void fill_crc_table(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int k = 0; k < 8; k++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        crc_table[0][n] = c;
    }
    for (uint32_t n = 0; n < 256; n++)
        for (int k = 1; k < 4; k++)
            crc_table[k][n] = crc_table[0][crc_table[k - 1][n] & 255] ^ (crc_table[k - 1][n] >> 8);
}

static uint32_t row_crc(const unsigned char *data, size_t size) {
    uint32_t c = 0xFFFFFFFFu, word;
    if (!crc_table[0][1]) fill_crc_table();
    for (; size >= 4; size -= 4, data += 4) {
        memcpy(&word, data, 4);
        c ^= word;
        c = crc_table[3][c & 255] ^ crc_table[2][(c >> 8) & 255] ^ crc_table[1][(c >> 16) & 255] ^ crc_table[0][c >> 24];
    }
    for (; size; size--) c = crc_table[0][(c ^ *data++) & 255] ^ (c >> 8);
    return ~c;
}
