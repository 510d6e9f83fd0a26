/* The few things that Cython cannot say: clocks, the CRC of a row, and the store that publishes it. */
#include <stdint.h>
#include <string.h>
#include <time.h>

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

/* CRC-32 as zlib computes it (polynomial 0xEDB88320), by carry-less multiplication where the processor has it: the
 * 16 KiB of tables that zlib walks push the service's own data out of the first-level cache, once per request. */
#if defined(__x86_64__) && !defined(CORE_PLAIN_CRC)
#include <immintrin.h>

static const uint32_t crc_nibbles[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
};

static uint32_t crc_bytes(uint32_t c, const unsigned char *data, size_t size) {
    for (; size; size--) {
        c ^= *data++;
        c = crc_nibbles[c & 15] ^ (c >> 4);
        c = crc_nibbles[c & 15] ^ (c >> 4);
    }
    return c;
}

/* Folding by 512, then by 128 bits, and a Barrett reduction, with the constants of Gopal et al., "Fast CRC Computation
 * for Generic Polynomials Using PCLMULQDQ" (Intel, 2009), for the reflected polynomial. size: 64 or more, of 16. */
__attribute__((target("pclmul,sse4.1")))
static uint32_t crc_folded(uint32_t c, const unsigned char *data, size_t size) {
    const __m128i by_512 = _mm_set_epi64x(0x01C6E41596, 0x0154442BD4);
    const __m128i by_128 = _mm_set_epi64x(0x00CCAA009E, 0x01751997D0);
    const __m128i *at = (const __m128i *)data;
    __m128i x[4], low;
    for (int i = 0; i < 4; i++) x[i] = _mm_loadu_si128(at + i);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)c));
    for (at += 4, size -= 64; size >= 64; at += 4, size -= 64)
        for (int i = 0; i < 4; i++) {
            low = _mm_clmulepi64_si128(x[i], by_512, 0x00);
            x[i] = _mm_clmulepi64_si128(x[i], by_512, 0x11);
            x[i] = _mm_xor_si128(_mm_xor_si128(x[i], low), _mm_loadu_si128(at + i));
        }
    for (int i = 1; i < 4; i++) {
        low = _mm_clmulepi64_si128(x[0], by_128, 0x00);
        x[0] = _mm_clmulepi64_si128(x[0], by_128, 0x11);
        x[0] = _mm_xor_si128(_mm_xor_si128(x[0], low), x[i]);
    }
    for (; size >= 16; at++, size -= 16) {
        low = _mm_clmulepi64_si128(x[0], by_128, 0x00);
        x[0] = _mm_clmulepi64_si128(x[0], by_128, 0x11);
        x[0] = _mm_xor_si128(_mm_xor_si128(x[0], low), _mm_loadu_si128(at));
    }
    /* 128 bits to 64, to 32 */
    const __m128i mask = _mm_setr_epi32(~0, 0, ~0, 0);
    __m128i y = _mm_clmulepi64_si128(x[0], by_128, 0x10);
    x[0] = _mm_xor_si128(_mm_srli_si128(x[0], 8), y);
    y = _mm_srli_si128(x[0], 4);
    x[0] = _mm_clmulepi64_si128(_mm_and_si128(x[0], mask), _mm_set_epi64x(0, 0x0163CD6124), 0x00);
    x[0] = _mm_xor_si128(x[0], y);
    const __m128i barrett = _mm_set_epi64x(0x01F7011641, 0x01DB710641);
    y = _mm_clmulepi64_si128(_mm_and_si128(x[0], mask), barrett, 0x10);
    y = _mm_clmulepi64_si128(_mm_and_si128(y, mask), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x[0], y), 1);
}

static uint32_t row_crc(const unsigned char *data, size_t size) {
    uint32_t c = 0xFFFFFFFFu;
    size_t whole = size & ~(size_t)15;
    if (whole >= 64 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        c = crc_folded(c, data, whole);
        data += whole;
        size -= whole;
    }
    return ~crc_bytes(c, data, size);
}
#else
static uint32_t crc_table[4][256]; /* filled at the first row, under the interpreter's lock */

static uint32_t row_crc(const unsigned char *data, size_t size) {
    uint32_t c, word;
    if (!crc_table[0][1]) {
        for (uint32_t n = 0; n < 256; n++) {
            c = n;
            for (int k = 0; k < 8; k++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            crc_table[0][n] = c;
        }
        for (int k = 1; k < 4; k++)
            for (int n = 0; n < 256; n++)
                crc_table[k][n] = crc_table[0][crc_table[k - 1][n] & 255] ^ (crc_table[k - 1][n] >> 8);
    }
    for (c = 0xFFFFFFFFu; size >= 4; size -= 4, data += 4) {
        memcpy(&word, data, 4);
        c ^= word;
        c = crc_table[3][c & 255] ^ crc_table[2][(c >> 8) & 255] ^
            crc_table[1][(c >> 16) & 255] ^ crc_table[0][c >> 24];
    }
    for (; size; size--) c = crc_table[0][(c ^ *data++) & 255] ^ (c >> 8);
    return ~c;
}
#endif
