// <linux/tcp.h> has the whole of struct tcp_info; <netinet/tcp.h> has an old part of it, and both together do not compile.
#include "CLinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int sluice_tcp_counts(int socket, struct sluice_tcp_counts *counts) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return -1;
    // The kernel gives as much of the structure as it knows.
    if (length < offsetof(struct tcp_info, tcpi_bytes_sent) + sizeof info.tcpi_bytes_sent) {
        errno = EOPNOTSUPP;
        return -1;
    }
    int domain = AF_INET6;
    length = sizeof domain;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0) return -1;
    int options = info.tcpi_state == 2 /* TCP_SYN_SENT */ ? 20 : info.tcpi_options & TCPI_OPT_TIMESTAMPS ? 12 : 0;
    counts->sent = (int64_t)info.tcpi_bytes_sent;
    counts->segments = info.tcpi_segs_out;
    counts->acknowledged = (int64_t)info.tcpi_bytes_acked;
    counts->incoming = info.tcpi_segs_in;
    int queued = 0;
    if (ioctl(socket, SIOCOUTQ, &queued) != 0) return -1;
    counts->unsent = info.tcpi_notsent_bytes;
    counts->queued = queued;
    counts->over = info.tcpi_state == 7 /* TCP_CLOSE */;
    counts->unanswered = info.tcpi_unacked;
    counts->received = (int64_t)info.tcpi_bytes_received;
    counts->largest = info.tcpi_snd_mss;
    // Since 5.0 and 4.19; 0 before.
    counts->gaps = (int64_t)info.tcpi_total_retrans + info.tcpi_reord_seen;
    counts->gapped = info.tcpi_sacked > 0;
    // As many blocks as there is room for (RFC 2018): three beside time stamps, else four.
    counts->selective = options == 12 ? 28 : 36;
    counts->per_trip = info.tcpi_rcv_space;
    counts->header = (domain == AF_INET ? 20 : 40) + 20 + options;
    return 0;
}

static int written(const struct sockaddr_storage *address, char *into) {
    const void *bytes;
    int port;
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        bytes = &four->sin_addr;
        port = ntohs(four->sin_port);
    } else if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        bytes = &six->sin6_addr;
        port = ntohs(six->sin6_port);
    } else {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return inet_ntop(address->ss_family, bytes, into, INET6_ADDRSTRLEN) ? port : -1;
}

int sluice_tcp_ends(int socket, struct sluice_tcp_ends *ends) {
    struct sockaddr_storage local, peer;
    socklen_t length = sizeof local;
    if (getsockname(socket, (struct sockaddr *)&local, &length) != 0) return -1;
    length = sizeof peer;
    if (getpeername(socket, (struct sockaddr *)&peer, &length) != 0) return -1;
    ends->local_port = written(&local, ends->local);
    ends->peer_port = written(&peer, ends->peer);
    return ends->local_port < 0 || ends->peer_port < 0 ? -1 : 0;
}

int sluice_tcp_local(int socket, char *into) {
    struct sockaddr_storage local;
    socklen_t length = sizeof local;
    if (getsockname(socket, (struct sockaddr *)&local, &length) != 0) return -1;
    return written(&local, into) < 0 ? -1 : 0;
}

int sluice_socket_cookie(int socket, uint64_t *cookie) {
    socklen_t length = sizeof *cookie;
    return getsockopt(socket, SOL_SOCKET, SO_COOKIE, cookie, &length);
}

int sluice_shut_down(int socket) { return shutdown(socket, SHUT_RDWR); }

int sluice_bind_to_interface(int socket, const char *name) {
    size_t length = strlen(name);
    // The kernel cuts a longer name and takes an empty one for "none".
    if (length == 0 || length >= IFNAMSIZ) {
        errno = ENODEV;
        return -1;
    }
    return setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)length);
}

void sluice_mark_packets(int socket, int traffic_class) {
    // A socket of IPv6 may carry IPv4 packets; each of the two calls fails on a socket that has none of its kind.
    setsockopt(socket, IPPROTO_IP, IP_TOS, &traffic_class, sizeof traffic_class);
    setsockopt(socket, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof traffic_class);
}

void sluice_keep_alive(int socket, int on) { setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on); }

int sluice_listen_on_loopback(uint16_t *port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        int code = errno;
        close(listener);
        errno = code;
        return -1;
    }
    *port = ntohs(address.sin_port);
    return listener;
}

int sluice_accept(int socket) {
    int number = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int on = 1;
    if (number >= 0) setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return number;
}

int sluice_stream_socket(size_t count, const char *interface) {
    int number = socket(count == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (number < 0) return -1;
    // The kernel doubles it for its own needs.
    int on = 1, ahead = 512 << 10;
    setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(number, SOL_SOCKET, SO_RCVBUF, &ahead, sizeof ahead);
    if (interface != NULL && sluice_bind_to_interface(number, interface) != 0) {
        int code = errno;
        close(number);
        errno = code;
        return -1;
    }
    return number;
}

int sluice_connect(int socket, const void *address, size_t count, uint16_t port) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (count == sizeof four.sin_addr) {
        memcpy(&four.sin_addr, address, count);
        return connect(socket, (struct sockaddr *)&four, sizeof four);
    }
    if (count != sizeof six.sin6_addr) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&six.sin6_addr, address, count);
    return connect(socket, (struct sockaddr *)&six, sizeof six);
}

int sluice_socket_error(int socket) {
    int code = 0;
    socklen_t length = sizeof code;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno;
}

int64_t sluice_send(int socket, const void *bytes, size_t count) { return send(socket, bytes, count, MSG_NOSIGNAL); }

int sluice_finish_sending(int socket) { return shutdown(socket, SHUT_WR); }
