#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// As we were started; without a number while nothing was changed.
static struct rlimit given_files = {.rlim_cur = RLIM_INFINITY, .rlim_max = 0};

int sluice_raise_open_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    if (limit.rlim_cur == limit.rlim_max) return 0;
    struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0) return -1;
    given_files = limit;
    return 0;
}

// Takes away what this process was given beyond its user's own rights (capabilities(7)): a program that is not root's and has no
// rights of its own in its file begins without any. System calls and nothing more; one that is refused leaves the others.
static void drop_rights(void) {
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // A filter of calls may refuse this one. What it would empty gives nothing to a program that names no right in its file.
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, sets) == 0) {
        for (int half = 0; half < _LINUX_CAPABILITY_U32S_3; half++) sets[half].inheritable = 0;
        syscall(SYS_capset, &head, sets);
    }
    // Takes CAP_SETPCAP, which root has: its programs keep what root may do otherwise.
    prctl(PR_CAPBSET_DROP, CAP_LEASE, 0, 0, 0);
}

// Gives up the rights of root for those of another user, for good. CAP_LEASE stays where it is to be kept and this process has it:
// without it the service's unit does not start either. System calls only.
static int change_user(const struct sluice_user *user) {
    if (user->keeps_lease) prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    // The calls of the C library would make other threads change too, and there are none in a child.
    if (syscall(SYS_setgroups, user->count, user->groups) != 0) return -1;
    if (syscall(SYS_setresgid, user->group, user->group, user->group) != 0) return -1;
    if (syscall(SYS_setresuid, user->user, user->user, user->user) != 0) return -1;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    if (user->keeps_lease) {
        sets[0].effective = sets[0].permitted = sets[0].inheritable = 1u << CAP_LEASE;
        if (syscall(SYS_capset, &head, sets) == 0) {
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_LEASE, 0, 0);
            return 0;
        }
        sets[0] = (struct __user_cap_data_struct){0};
    }
    return (int)syscall(SYS_capset, &head, sets);
}

// Only what is async-signal-safe may run between fork and exec: other threads may hold any lock.
static void become(
    const char *const *words, const char *const *environment, const char *folder, int input, int output, int errors,
    int lent, const struct sluice_user *user, const struct sluice_confinement *confinement, int report, pid_t parent) {
    if (user != NULL && change_user(user) != 0) {
        int code = errno;
        (void)!write(report, &code, sizeof code);
        _exit(127);
    }
    // After the change of the user, which would clear it. The thread that waits for the child started it, so this cannot come
    // before its time.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) sigaction(number, &plain, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0 || chdir(folder) != 0) {
        int code = errno;
        (void)!write(report, &code, sizeof code);
        _exit(127);
    }
    // Whatever a library left open without a mark. Where the call is not known (before Linux 5.11), what has a mark goes.
    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    if (lent >= 0) fcntl(lent, F_SETFD, 0);
    if (user == NULL) drop_rights();
    if (confinement != NULL && sluice_confine(confinement, words[0], lent) != 0) {
        int code = errno;
        (void)!write(report, &code, sizeof code);
        _exit(127);
    }
    // A system call and nothing more. Where it is refused the program has more than it was to have. Not before the confinement, which
    // needs free numbers for its rules: this process may have more descriptors than a program is to have. A decoder has its own limit.
    if (given_files.rlim_max && (confinement == NULL || confinement->decoder == NULL)) {
        prlimit(0, RLIMIT_NOFILE, &given_files, NULL);
    }
    execvpe(words[0], (char *const *)words, (char *const *)environment);
    int code = errno;
    (void)!write(report, &code, sizeof code);
    _exit(127);
}

int sluice_spawn(
    const char *const *words, const char *const *environment, const char *folder, int input, int output,
    int errors, int lent, const struct sluice_user *user, const struct sluice_confinement *confinement) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) return -1;
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        become(words, environment, folder, input, output, errors, lent, user, confinement, report[1], parent);
    }
    int code = child < 0 ? errno : 0;
    close(report[1]);
    if (child > 0) {
        // Both sides do it: whoever comes first, the group is there when either goes on.
        setpgid(child, child);
        ssize_t got;
        do got = read(report[0], &code, sizeof code);
        while (got < 0 && errno == EINTR);
        if (got == (ssize_t)sizeof code) {
            while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
            child = -1;
        }
    }
    close(report[0]);
    if (child < 0) errno = code;
    return child;
}

int sluice_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

int sluice_pipe(int *ends) {
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    // Read without waiting; the program at the other end writes as it likes.
    return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

int sluice_input(const void *bytes, size_t count) {
    int file = memfd_create("input", MFD_CLOEXEC);
    if (file < 0) return -1;
    const char *next = bytes;
    while (count > 0) {
        ssize_t wrote = write(file, next, count);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            int code = errno;
            close(file);
            errno = code;
            return -1;
        }
        next += wrote;
        count -= (size_t)wrote;
    }
    if (lseek(file, 0, SEEK_SET) < 0) {
        int code = errno;
        close(file);
        errno = code;
        return -1;
    }
    return file;
}

int sluice_spawn_on_terminal(const char *const *words) {
    posix_spawnattr_t attributes;
    int code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        errno = code;
        return -1;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t pid = -1;
    code = posix_spawn(&pid, words[0], NULL, &attributes, (char *const *)words, environ);
    posix_spawnattr_destroy(&attributes);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return pid;
}
