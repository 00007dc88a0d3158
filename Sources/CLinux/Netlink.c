#include "CLinux.h"
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int sluice_netlink(int protocol, int waits) {
    int type = SOCK_RAW | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK);
    int opened = socket(AF_NETLINK, type, protocol);
    if (opened < 0) return -1;
    // As much as an unprivileged process gets (net.core.rmem_max): what does not fit is lost, and everything is asked again.
    int room = 1 << 20;
    setsockopt(opened, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    // The kernel answers within the call that asks. A limit makes an error of what would be a hang.
    struct timeval timeout = {.tv_sec = 10};
    setsockopt(opened, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    struct sockaddr_nl own;
    memset(&own, 0, sizeof own);
    own.nl_family = AF_NETLINK;
    if (bind(opened, (struct sockaddr *)&own, sizeof own) == 0) return opened;
    int code = errno;
    close(opened);
    errno = code;
    return -1;
}

int sluice_netlink_join(int socket, int group) {
    return setsockopt(socket, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
}

int sluice_netlink_leave(int socket, int group) {
    return setsockopt(socket, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group);
}

int64_t sluice_netlink_send(int socket, const void *message, size_t count) {
    struct sockaddr_nl kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.nl_family = AF_NETLINK;
    return sendto(socket, message, count, 0, (struct sockaddr *)&kernel, sizeof kernel);
}

int64_t sluice_netlink_receive(int socket, void *into, size_t count, uint32_t *sender) {
    struct sockaddr_nl from;
    memset(&from, 0, sizeof from);
    socklen_t length = sizeof from;
    int64_t got = recvfrom(socket, into, count, MSG_TRUNC, (struct sockaddr *)&from, &length);
    *sender = length == sizeof from && from.nl_family == AF_NETLINK ? from.nl_pid : UINT32_MAX;
    return got;
}

// Asks a link's driver (linux/ethtool.h). `command` begins with its number.
static int ask_driver(const char *name, void *command) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    if (strlen(name) >= sizeof request.ifr_name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(request.ifr_name, name);
    request.ifr_data = command;
    int opened = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (opened < 0) return -1;
    int result = ioctl(opened, SIOCETHTOOL, &request);
    int code = errno;
    close(opened);
    errno = code;
    return result;
}

int sluice_link_joins_segments(const char *name) {
    struct ethtool_value value = {.cmd = ETHTOOL_GTSO};
    return ask_driver(name, &value) != 0 || value.data != 0;
}

int sluice_link_driver(const char *name, char *driver, char *bus) {
    struct ethtool_drvinfo info;
    memset(&info, 0, sizeof info);
    info.cmd = ETHTOOL_GDRVINFO;
    int result = ask_driver(name, &info);
    // Both fields end with a zero byte when the kernel has filled them; the last byte is made sure of.
    memcpy(driver, info.driver, sizeof info.driver);
    memcpy(bus, info.bus_info, sizeof info.bus_info);
    driver[sizeof info.driver - 1] = bus[sizeof info.bus_info - 1] = 0;
    return result;
}

// Newer than the headers of some distributions (Linux 5.1).
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

/// A datagram socket for an address, held to a link where that is not 0; -1 with errno.
static int datagram_socket(int link, size_t count) {
    int opened = socket(count == 16 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (opened < 0 || link == 0 || setsockopt(opened, SOL_SOCKET, SO_BINDTOIFINDEX, &link, sizeof link) == 0) return opened;
    int code = errno;
    close(opened);
    errno = code;
    return -1;
}

/// Writes an address of 4 or 16 bytes as the kernel wants it, and returns its length.
static socklen_t socket_address(
    struct sockaddr_storage *into, const void *address, size_t count, int port, int link) {
    memset(into, 0, sizeof *into);
    if (count == 16) {
        struct sockaddr_in6 *wide = (struct sockaddr_in6 *)into;
        wide->sin6_family = AF_INET6;
        wide->sin6_port = htons((uint16_t)port);
        wide->sin6_scope_id = (uint32_t)link;
        memcpy(&wide->sin6_addr, address, 16);
        return sizeof *wide;
    }
    struct sockaddr_in *narrow = (struct sockaddr_in *)into;
    narrow->sin_family = AF_INET;
    narrow->sin_port = htons((uint16_t)port);
    memcpy(&narrow->sin_addr, address, 4);
    return sizeof *narrow;
}

int sluice_touch(int link, const void *address, size_t count) {
    int opened = datagram_socket(link, count);
    if (opened < 0) return -1;
    struct sockaddr_storage place;
    socklen_t length = socket_address(&place, address, count, 9, link);
    int result = (int)sendto(opened, "", 0, 0, (struct sockaddr *)&place, length);
    int code = errno;
    close(opened);
    errno = code;
    return result;
}

int sluice_path_mtu(int link, const void *address, size_t count, int port) {
    int opened = datagram_socket(link, count);
    if (opened < 0) return -1;
    struct sockaddr_storage place;
    socklen_t length = socket_address(&place, address, count, port, link);
    int result = connect(opened, (struct sockaddr *)&place, length);
    if (result == 0) {
        int mtu = 0;
        socklen_t size = sizeof mtu;
        result = count == 16 ? getsockopt(opened, IPPROTO_IPV6, IPV6_MTU, &mtu, &size)
                             : getsockopt(opened, IPPROTO_IP, IP_MTU, &mtu, &size);
        if (result == 0) result = mtu;
    }
    int code = errno;
    close(opened);
    errno = code;
    return result;
}

int sluice_leave_network(void) { return unshare(CLONE_NEWNET) == 0 ? gettid() : -1; }
