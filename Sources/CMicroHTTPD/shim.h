#pragma once
#include <microhttpd.h>
#include <stdbool.h>
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
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connected) {
    struct MHD_OptionItem more[7] = {{MHD_OPTION_END, 0, NULL}};
    int count = 0;
    if (threads > 1) more[count++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, threads, NULL};
    if (certificate) {
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)certificate};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key};
        // Its own choice includes TLS 1.0 and 1.1, which RFC 8996 forbids.
        more[count++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"};
    }
    // 0.9.75 would not refuse more, but write the head of its refusal twice.
#if MHD_VERSION >= 0x00097701
    more[count++] = (struct MHD_OptionItem){MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL};
#endif
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    return MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME | (certificate ? MHD_USE_TLS : 0), 0,
        NULL, NULL, handler, context,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
        seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_NOTIFY_CONNECTION, connected, context,
        MHD_OPTION_UNESCAPE_CALLBACK, sluice_mhd_as_written, NULL, MHD_OPTION_URI_LOG_CALLBACK, target, context,
        MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

/// After so many seconds without a byte this connection is closed; 0: never.
static inline void sluice_mhd_set_timeout(struct MHD_Connection *connection, unsigned int seconds) {
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

static inline int sluice_mhd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/// Whether a connection ends, and does not begin.
static inline bool sluice_mhd_closes(enum MHD_ConnectionNotificationCode what) {
    return what == MHD_CONNECTION_NOTIFY_CLOSED;
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

enum sluice_mhd_head_fault {
    sluice_mhd_head_fine,
    sluice_mhd_head_blank_in_name,
    sluice_mhd_head_folded,
    sluice_mhd_head_bare_feed,
};

struct sluice_mhd_walk {
    const char *start, *end;
    /// Where the next line begins.
    const char *next;
    enum sluice_mhd_head_fault fault;
};

/// Behind a line of a head, of which libmicrohttpd has replaced CR and LF with zeros.
static inline void sluice_mhd_walk_on(struct sluice_mhd_walk *walk, const char *line_end) {
    if (walk->end - line_end < 2 || line_end[0] || line_end[1]) walk->fault = sluice_mhd_head_bare_feed;
    walk->next = line_end + 2;
}

static inline enum MHD_Result sluice_mhd_walk_line(
    void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value, size_t value_size) {
    struct sluice_mhd_walk *walk = (struct sluice_mhd_walk *)context;
    (void)kind;
    // Lines that were folded into one were copied elsewhere; one zero less between two lines was no CR and LF.
    if (name != walk->next) {
        walk->fault = name + 1 == walk->next ? sluice_mhd_head_bare_feed : sluice_mhd_head_folded;
    } else if (memchr(name, ' ', name_size) || memchr(name, '\t', name_size)) {
        walk->fault = sluice_mhd_head_blank_in_name;
    } else if (value && memchr(value, '\r', value_size)) {
        walk->fault = sluice_mhd_head_bare_feed;
    } else if (!value || value <= name + name_size || value > walk->end || value_size > (size_t)(walk->end - value)) {
        walk->fault = sluice_mhd_head_folded;
    } else {
        sluice_mhd_walk_on(walk, value + value_size);
    }
    return walk->fault ? MHD_NO : MHD_YES;
}

/// What libmicrohttpd before 0.9.77 takes in the head of a request and RFC 9112 forbids (sections 2.2, 5.1 and 5.2).
///
/// It reads the head in place and cuts it into lines there, so the bytes between the pieces that it hands out say how they
/// were written: a name stands right behind the two zeros of the line before. `method` and `version` are as the handler
/// gets them, and the first of these is where the head begins.
static inline enum sluice_mhd_head_fault sluice_mhd_head_fault(
    struct MHD_Connection *connection, const char *method, const char *version) {
    struct sluice_mhd_walk walk = {method, method + sluice_mhd_header_size(connection), NULL, sluice_mhd_head_fine};
    if (MHD_get_version()[0] != '0') return walk.fault;
    if (version < walk.start || version >= walk.end) return sluice_mhd_head_bare_feed;
    sluice_mhd_walk_on(&walk, version + strlen(version));
    if (!walk.fault) MHD_get_connection_values_n(connection, MHD_HEADER_KIND, sluice_mhd_walk_line, &walk);
    if (!walk.fault) {
        sluice_mhd_walk_on(&walk, walk.next);
        if (walk.next != walk.end) walk.fault = sluice_mhd_head_bare_feed;
    }
    return walk.fault;
}
