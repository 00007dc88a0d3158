#pragma once
#include <zlib.h>

/* Macros in zlib.h, which Swift does not see. */
static inline int sluice_inflate_begin(z_stream *stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}

static inline int sluice_deflate_begin(z_stream *stream, int level, int window_bits) {
    return deflateInit2(stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
}
