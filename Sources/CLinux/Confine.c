#include "CLinux.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// <linux/landlock.h> of the oldest supported distributions ends before the rules about TCP (ABI 4, Linux 6.7).
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
struct ruleset { uint64_t files, net; };
struct port_rule { uint64_t access, port; };
enum { RULESET_VERSION = 1, RULE_NET_PORT = 2, BIND_TCP = 1, CONNECT_TCP = 2 };

int sluice_landlock_abi(void) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static int hold_tcp(uint16_t port) {
    struct ruleset rules = {.files = 0, .net = BIND_TCP | CONNECT_TCP};
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (set < 0) return -1;
    struct port_rule rule = {.access = CONNECT_TCP, .port = port};
    long result = syscall(SYS_landlock_add_rule, set, RULE_NET_PORT, &rule, 0);
    if (result == 0) result = syscall(SYS_landlock_restrict_self, set, 0);
    int code = errno;
    close(set);
    errno = code;
    return result == 0 ? 0 : -1;
}

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define OWN_ARCH AUDIT_ARCH_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define OWN_ARCH AUDIT_ARCH_RISCV64
#endif

int sluice_has_call_filter(void) {
#ifdef OWN_ARCH
    uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
#else
    return 0;
#endif
}

#ifdef OWN_ARCH
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#else
#define LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#endif
#define LOAD(where) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(where))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define ANY_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(value), yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value))
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
#define REFUSE(code) RETURN(SECCOMP_RET_ERRNO | (code))
// Refuses a call whose flags, in the argument `n`, contain MSG_FASTOPEN: it connects without the check that Landlock hooks into.
#define REFUSE_FAST_OPEN(call, n) EQUAL(call, 0, 4), LOAD(LOW(n)), ANY_BIT(MSG_FASTOPEN, 0, 1), REFUSE(EOPNOTSUPP), ALLOW

// The jumps count instructions, and every branch returns: after a call that does not match, its number is still loaded.
static const struct sock_filter calls[] = {
    LOAD(offsetof(struct seccomp_data, arch)),
    EQUAL(OWN_ARCH, 1, 0),
    // Calls of another architecture have other numbers, which nothing here checks.
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(offsetof(struct seccomp_data, nr)),
#ifdef __x86_64__
    // The numbers of x32.
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1),
    REFUSE(ENOSYS),
#endif
    // A ring opens sockets without system calls.
    EQUAL(SYS_io_uring_setup, 0, 1),
    REFUSE(ENOSYS),
    // A TCP socket that listens without bind gets a port from the kernel, and Landlock does not check that. The descriptor
    // does not tell its family, so this holds for sockets in the file system too.
    EQUAL(SYS_listen, 0, 1),
    REFUSE(EACCES),
    REFUSE_FAST_OPEN(SYS_sendto, 3),
    REFUSE_FAST_OPEN(SYS_sendmsg, 2),
    REFUSE_FAST_OPEN(SYS_sendmmsg, 3),
    EQUAL(SYS_socket, 1, 0),
    ALLOW,
    LOAD(LOW(0)),
    EQUAL(AF_UNIX, 0, 1),
    ALLOW,
    // NETLINK_ROUTE tells the interfaces and addresses, which many libraries ask for.
    EQUAL(AF_NETLINK, 0, 4),
    LOAD(LOW(2)),
    EQUAL(0, 0, 1),
    ALLOW,
    REFUSE(EACCES),
    EQUAL(AF_INET, 2, 0),
    EQUAL(AF_INET6, 1, 0),
    REFUSE(EACCES),
    // The type without SOCK_NONBLOCK and SOCK_CLOEXEC (socket(2)).
    LOAD(LOW(1)),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xF),
    EQUAL(SOCK_STREAM, 1, 0),
    REFUSE(EACCES),
    // TCP alone: Landlock checks neither MPTCP nor SCTP.
    LOAD(LOW(2)),
    EQUAL(0, 1, 0),
    EQUAL(6 /* IPPROTO_TCP */, 0, 1),
    ALLOW,
    REFUSE(EACCES),
};

static int filter_calls(void) {
    struct sock_fprog program = {.len = sizeof calls / sizeof calls[0], .filter = (struct sock_filter *)calls};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
#else
static int filter_calls(void) {
    errno = ENOSYS;
    return -1;
}
#endif

int sluice_confine(const struct sluice_confinement *confinement) {
    // Both need it without privileges: a set-user-ID program could otherwise be started with a filter that misleads it.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    if (confinement->holds_tcp && hold_tcp(confinement->port) != 0) return -1;
    return confinement->filters_calls ? filter_calls() : 0;
}
