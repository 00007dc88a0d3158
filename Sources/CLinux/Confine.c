#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// <linux/landlock.h> of the oldest supported distributions ends before the rules about TCP (ABI 4, Linux 6.7).
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
struct ruleset { uint64_t files, net, scoped; };
struct port_rule { uint64_t access, port; };
struct path_rule { uint64_t access; int32_t parent; } __attribute__((packed));
enum { RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2, BIND_TCP = 1, CONNECT_TCP = 2 };
enum { EXECUTE = 1, READ_FILE = 4 };

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

// Every right that a version of Landlock knows is refused where no rule grants it.
static struct ruleset everything(int abi) {
    struct ruleset all = {.files = (1u << 13) - 1};
    if (abi >= 2) all.files |= 1u << 13;  // REFER
    if (abi >= 3) all.files |= 1u << 14;  // TRUNCATE
    if (abi >= 4) all.net = BIND_TCP | CONNECT_TCP;
    if (abi >= 5) all.files |= 1u << 15;  // IOCTL_DEV
    if (abi >= 6) all.scoped = 3;  // sockets without a name in the file system, and signals
    return all;
}

static int permit(int set, int parent, uint64_t access) {
    struct path_rule rule = {.access = access, .parent = parent};
    return (int)syscall(SYS_landlock_add_rule, set, RULE_PATH_BENEATH, &rule, 0);
}

// A path that does not exist grants nothing.
static int permit_path(int set, const char *path, uint64_t access) {
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    int result = permit(set, place, access);
    int code = errno;
    close(place);
    errno = code;
    return result;
}

// What a program needs to start: shared libraries, their list, and the loader, which the kernel executes for it.
static const char *const libraries[] = {"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64",
                                        "/usr/local/lib", "/etc/ld.so.cache"};
static const char *const loaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
                                      "/lib/ld-linux-armhf.so.3", "/lib/ld-linux-riscv64-lp64d.so.1"};
enum { LIBRARIES = sizeof libraries / sizeof libraries[0], LOADERS = sizeof loaders / sizeof loaders[0] };

static int hold_files(const char *program, int file) {
    struct ruleset rules = everything(sluice_landlock_abi());
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (set < 0) return -1;
    int result = permit_path(set, program, EXECUTE | READ_FILE);
    for (int n = 0; n < LIBRARIES && result == 0; n++) result = permit_path(set, libraries[n], READ_FILE);
    for (int n = 0; n < LOADERS && result == 0; n++) result = permit_path(set, loaders[n], EXECUTE | READ_FILE);
    // The program opens it again, by /proc/self/fd: that is judged like its path.
    if (result == 0 && file >= 0) result = permit(set, file, READ_FILE);
    if (result == 0) result = (int)syscall(SYS_landlock_restrict_self, set, 0);
    int code = errno;
    close(set);
    errno = code;
    return result;
}

// Only root may raise a hard limit: a lower one stays.
static int limit(int resource, rlim_t most) {
    struct rlimit given;
    if (prlimit(0, resource, NULL, &given) != 0) return -1;
    if (given.rlim_max > most) given.rlim_max = most;
    given.rlim_cur = given.rlim_max;
    return prlimit(0, resource, &given, NULL);
}

static int limit_decoder(const struct sluice_decoder *decoder) {
    // RLIMIT_DATA counts private memory that can be written to, and the filter leaves no other kind. It stops ordinary allocation.
    // A program under foreign control gets around it: pages that it makes read-only stay and no longer count; and where a change
    // of protection (mprotect) would exceed RLIMIT_AS as well, the kernel checks neither limit. No page is outside a mapping, so
    // RLIMIT_AS, which counts every mapping, is the bound that always holds.
    if (limit(RLIMIT_DATA, decoder->memory) != 0 || limit(RLIMIT_AS, decoder->addresses) != 0) return -1;
    // Also the size of each thread's stack, which counts whole.
    if (limit(RLIMIT_STACK, 2 << 20) != 0) return -1;
    if (limit(RLIMIT_CPU, decoder->seconds) != 0 || limit(RLIMIT_FSIZE, 0) != 0) return -1;
    if (limit(RLIMIT_CORE, 0) != 0 || limit(RLIMIT_NOFILE, 64) != 0 || limit(RLIMIT_MEMLOCK, 0) != 0) return -1;
    // Only root's programs have capabilities: the one that reads what it was lent, also files of other users, is left.
    for (int right = 0; right < 64; right++) {
        if (right != CAP_DAC_READ_SEARCH) prctl(PR_CAPBSET_DROP, right, 0, 0, 0);
    }
    // The lowest priorities. The filter of a service may refuse to lower them further: then they stay as they are.
    struct sched_param none = {0};
    setpriority(PRIO_PROCESS, 0, 19);
    sched_setscheduler(0, SCHED_IDLE, &none);
    sluice_set_io_priority(3 << 13);  // IOPRIO_CLASS_IDLE of ioprio_set(2)
    return 0;
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
#define HIGH(n) (LOW(n) + 4)
#else
#define LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#define HIGH(n) (LOW(n) - 4)
#endif
#define LOAD(where) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(where))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define ANY_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(value), yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value))
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
#define REFUSE(code) RETURN(SECCOMP_RET_ERRNO | (code))
// Refuses a call whose flags, in the argument `n`, contain MSG_FASTOPEN: it connects without the check that Landlock hooks into.
#define REFUSE_FAST_OPEN(call, n) EQUAL(call, 0, 4), LOAD(LOW(n)), ANY_BIT(MSG_FASTOPEN, 0, 1), REFUSE(EOPNOTSUPP), ALLOW

// Loads the number of the call. Calls of another architecture have other numbers, which nothing here checks; nor those of x32.
#define LOAD_CALL \
    LOAD(offsetof(struct seccomp_data, arch)), EQUAL(OWN_ARCH, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), \
        LOAD(offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_FOREIGN_CALL, 0, 1), REFUSE(ENOSYS)
#ifdef __x86_64__
#define FIRST_FOREIGN_CALL 0x40000000u
#else
#define FIRST_FOREIGN_CALL 0xFFFFFFFFu
#endif

// The jumps count instructions, and every branch returns: after a call that does not match, its number is still loaded.
static const struct sock_filter calls[] = {
    LOAD_CALL,
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

#define PERMIT(call) EQUAL(call, 0, 1), ALLOW
// F_SETOWN, F_SETSIG and F_SETFL with O_ASYNC send signals to other processes without kill(2), and leases and F_NOTIFY have signals
// of their own. What copies a descriptor or reads its flags does nothing of the kind.
#define PERMIT_FCNTL(call) \
    EQUAL(call, 0, 8), LOAD(LOW(1)), EQUAL(F_DUPFD, 5, 0), EQUAL(F_DUPFD_CLOEXEC, 4, 0), EQUAL(F_GETFD, 3, 0), \
        EQUAL(F_SETFD, 2, 0), EQUAL(F_GETFL, 1, 0), REFUSE(EINVAL), ALLOW
// RLIMIT_DATA counts neither shared memory nor what grows like a stack.
#define PERMIT_MAPPING(call) \
    EQUAL(call, 0, 6), LOAD(LOW(3)), ANY_BIT(MAP_GROWSDOWN, 2, 0), ANY_BIT(MAP_SHARED, 0, 2), ANY_BIT(MAP_ANONYMOUS, 0, 1), \
        REFUSE(EPERM), ALLOW

// All that a decoder needs, and no other call: memory, threads, clocks, and files as far as Landlock lets it open them. So it has
// no sockets, no other processes, no signals to others, no ptrace, keys, namespaces, mounts, io_uring or bpf. A call that is
// refused as a whole seems to be one that the kernel does not know, for which the C library has another way or none.
static const struct sock_filter decoder_calls[] = {
    LOAD_CALL,
    PERMIT(SYS_read), PERMIT(SYS_write), PERMIT(SYS_readv), PERMIT(SYS_writev), PERMIT(SYS_pread64), PERMIT(SYS_lseek),
    PERMIT(SYS_openat), PERMIT(SYS_close), PERMIT(SYS_dup), PERMIT(SYS_readlinkat), PERMIT(SYS_faccessat), PERMIT(SYS_getcwd),
    PERMIT(SYS_munmap), PERMIT(SYS_mprotect), PERMIT(SYS_mremap), PERMIT(SYS_madvise), PERMIT(SYS_brk), PERMIT(SYS_futex),
    PERMIT(SYS_set_robust_list), PERMIT(SYS_set_tid_address), PERMIT(SYS_rt_sigaction), PERMIT(SYS_rt_sigprocmask),
    PERMIT(SYS_rt_sigreturn), PERMIT(SYS_sigaltstack), PERMIT(SYS_restart_syscall), PERMIT(SYS_exit), PERMIT(SYS_exit_group),
    PERMIT(SYS_clock_gettime), PERMIT(SYS_clock_getres), PERMIT(SYS_clock_nanosleep), PERMIT(SYS_nanosleep),
    PERMIT(SYS_gettimeofday), PERMIT(SYS_times), PERMIT(SYS_getrusage), PERMIT(SYS_getpid), PERMIT(SYS_gettid),
    PERMIT(SYS_getuid), PERMIT(SYS_geteuid), PERMIT(SYS_getgid), PERMIT(SYS_getegid), PERMIT(SYS_uname), PERMIT(SYS_sysinfo),
    PERMIT(SYS_getrandom), PERMIT(SYS_sched_getaffinity), PERMIT(SYS_sched_yield), PERMIT(SYS_ppoll), PERMIT(SYS_pselect6),
    // Landlock lets it execute itself and its loader alone: what it starts so is held like itself.
    PERMIT(SYS_execve),
#ifdef SYS_rseq
    PERMIT(SYS_rseq),
#endif
#ifdef SYS_statx
    PERMIT(SYS_statx),
#endif
#ifdef SYS_mmap
    PERMIT_MAPPING(SYS_mmap),
#endif
#ifdef SYS_fstat
    PERMIT(SYS_fstat),
#endif
#ifdef SYS_newfstatat
    PERMIT(SYS_newfstatat),
#endif
#ifdef SYS_fcntl
    PERMIT_FCNTL(SYS_fcntl),
#endif
#ifdef __x86_64__
    PERMIT(SYS_open), PERMIT(SYS_stat), PERMIT(SYS_lstat), PERMIT(SYS_access), PERMIT(SYS_readlink), PERMIT(SYS_poll),
    PERMIT(SYS_select), PERMIT(SYS_arch_prctl), PERMIT(SYS_time), PERMIT(SYS_getrlimit),
#elif defined(__arm__)
    PERMIT(SYS_open), PERMIT(SYS_access), PERMIT(SYS_readlink), PERMIT(SYS_poll), PERMIT(SYS_ugetrlimit), PERMIT(SYS__newselect),
    PERMIT_MAPPING(SYS_mmap2), PERMIT(SYS__llseek), PERMIT(SYS_fstat64), PERMIT(SYS_stat64), PERMIT(SYS_lstat64),
    PERMIT(SYS_fstatat64), PERMIT_FCNTL(SYS_fcntl64), PERMIT(SYS_sigreturn), PERMIT(SYS_getuid32), PERMIT(SYS_geteuid32),
    PERMIT(SYS_getgid32), PERMIT(SYS_getegid32), PERMIT(0x0f0002 /* cacheflush */), PERMIT(0x0f0005 /* set_tls */),
    // With times of 64 bits.
    PERMIT(403 /* clock_gettime */), PERMIT(406 /* clock_getres */), PERMIT(407 /* clock_nanosleep */),
    PERMIT(413 /* pselect6 */), PERMIT(414 /* ppoll */), PERMIT(422 /* futex */),
#elif defined(__aarch64__)
    PERMIT(SYS_getrlimit),
#elif defined(__riscv)
    PERMIT(SYS_getrlimit), PERMIT(258 /* riscv_hwprobe */), PERMIT(259 /* riscv_flush_icache */),
#endif
    // It may look at its limits (the third argument is NULL), and change none.
    EQUAL(SYS_prlimit64, 0, 6), LOAD(LOW(2)), EQUAL(0, 0, 3), LOAD(HIGH(2)), EQUAL(0, 0, 1), ALLOW, REFUSE(EPERM),
    // Threads, and no other processes. The flags of clone3(2) are in memory, which no filter sees.
    EQUAL(SYS_clone, 0, 4), LOAD(LOW(0)), ANY_BIT(CLONE_THREAD, 0, 1), ALLOW, REFUSE(EPERM),
    REFUSE(ENOSYS),
};

static int filter_calls(int decodes) {
    struct sock_fprog program = {.len = sizeof calls / sizeof calls[0], .filter = (struct sock_filter *)calls};
    if (decodes) {
        program.len = sizeof decoder_calls / sizeof decoder_calls[0];
        program.filter = (struct sock_filter *)decoder_calls;
    }
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
#else
static int filter_calls(int decodes) {
    errno = ENOSYS;
    return -1;
}
#endif

int sluice_confine(const struct sluice_confinement *confinement, const char *program, int file) {
    // Both need it without privileges: a set-user-ID program could otherwise be started with a filter that misleads it.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    const struct sluice_decoder *decoder = confinement->decoder;
    if (decoder != NULL) {
        // The whole, or it does not start. The limit of descriptors comes last: until it executes another program, this process has
        // all those of the one that started it.
        if (hold_files(program, file) != 0 || limit_decoder(decoder) != 0) return -1;
        return filter_calls(1);
    }
    if (confinement->holds_tcp && hold_tcp(confinement->port) != 0) return -1;
    return confinement->filters_calls ? filter_calls(0) : 0;
}
