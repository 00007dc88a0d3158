#pragma once
#include <microhttpd.h>
#include <string.h>

// Swift cannot call variadic C, and does not see constants that are casts in macros.

/// Leaves the target as the client wrote it: decoding is ours, and strict.
static inline size_t sluice_mhd_as_written(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

/// Starts a server on `socket`, which listens already and is closed when the server stops.
/// `certificate` and `key`: PEM text that lives as long as the server; NULL for none, which is without TLS.
/// `seconds`: an idle connection that is not suspended is closed after this time.
///
/// poll(2) and not epoll(7): 0.9.75 uses epoll edge-triggered and takes a short read for the end of what is there, so
/// that a client's goodbye which arrives together with its last bytes is noticed only after `seconds`.
static inline struct MHD_Daemon *sluice_mhd_start(
    int socket, unsigned int threads, unsigned int connections, unsigned int seconds, size_t memory,
    const char *certificate, const char *key, void *context,
    MHD_AccessHandlerCallback handler, void *(*target)(void *, const char *, struct MHD_Connection *),
    MHD_RequestCompletedCallback completed) {
    struct MHD_OptionItem more[4] = {{MHD_OPTION_END, 0, NULL}};
    int count = 0;
    if (threads > 1) more[count++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, threads, NULL};
    if (certificate) {
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)certificate};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key};
    }
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    return MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME | (certificate ? MHD_USE_TLS : 0), 0,
        NULL, NULL, handler, context,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
        seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, sluice_mhd_as_written, NULL, MHD_OPTION_URI_LOG_CALLBACK, target, context,
        MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

/// After so many seconds without a byte this connection is closed; 0: never.
static inline void sluice_mhd_set_patience(struct MHD_Connection *connection, unsigned int seconds) {
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

static inline int sluice_mhd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/// Bytes of the request line and headers together.
static inline size_t sluice_mhd_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

/// A response that owns a copy of `bytes`.
static inline struct MHD_Response *sluice_mhd_response(const void *bytes, size_t count) {
    return MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

/// A response of unknown length, read from `reader` until it returns `sluice_mhd_end`.
static inline struct MHD_Response *sluice_mhd_stream(
    size_t block, MHD_ContentReaderCallback reader, void *context, MHD_ContentReaderFreeCallback release) {
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block, reader, context, release);
}

static const ssize_t sluice_mhd_end = MHD_CONTENT_READER_END_OF_STREAM;
