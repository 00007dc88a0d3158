#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static int64_t nanoseconds(struct statx_timestamp t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

static int look_at(int folder, const char *path, int extra, struct sluice_look *look) {
    struct statx s;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | extra | (path[0] ? 0 : AT_EMPTY_PATH);
    if (statx(folder, path, flags, STATX_BASIC_STATS | STATX_BTIME, &s) != 0) return -1;
    look->device = makedev(s.stx_dev_major, s.stx_dev_minor);
    look->inode = s.stx_ino;
    look->size = (int64_t)s.stx_size;
    look->modified = nanoseconds(s.stx_mtime);
    look->changed = nanoseconds(s.stx_ctime);
    look->has_born = (s.stx_mask & STATX_BTIME) != 0;
    look->born = look->has_born ? nanoseconds(s.stx_btime) : 0;
    look->blocks = (int64_t)s.stx_blocks;
    look->mode = s.stx_mode;
    look->links = s.stx_nlink;
    look->owner = s.stx_uid;
    return 0;
}

int sluice_statx(int folder, const char *path, struct sluice_look *look) { return look_at(folder, path, 0, look); }
int sluice_statx_fresh(int folder, const char *path, struct sluice_look *look) {
    return look_at(folder, path, AT_STATX_FORCE_SYNC, look);
}

int64_t sluice_copy_file_range(int in, int out, size_t count) { return copy_file_range(in, NULL, out, NULL, count, 0); }
int sluice_clone(int out, int in) { return ioctl(out, FICLONE, in); }
int sluice_rename_no_replace(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE);
}
int sluice_reserve(int file, int64_t size) { return fallocate(file, FALLOC_FL_KEEP_SIZE, 0, size); }
int sluice_sync_range(int file, int64_t offset, int64_t count) {
    return sync_file_range(file, offset, count, SYNC_FILE_RANGE_WRITE);
}
int sluice_wait_range(int file, int64_t offset, int64_t count) {
    return sync_file_range(
        file, offset, count, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}
int sluice_nameless_file(int folder) { return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }
int sluice_set_attribute(int file, const char *name, const void *value, size_t count) {
    return fsetxattr(file, name, value, count, 0);
}
int64_t sluice_get_attribute(int file, const char *name, void *into, size_t count) {
    return fgetxattr(file, name, into, count);
}
int64_t sluice_get_attribute_at(const char *path, const char *name, void *into, size_t count) {
    return lgetxattr(path, name, into, count);
}
int sluice_read_lease(int file, int take) { return fcntl(file, F_SETLEASE, take ? F_RDLCK : F_UNLCK); }

static void sluice_tell_space(const struct statfs *s, struct sluice_space *space) {
    space->total = (int64_t)s->f_blocks * s->f_frsize;
    space->free_to_us = (int64_t)s->f_bavail * s->f_frsize;
    space->files_free = s->f_files == 0 ? INT64_MAX : (int64_t)s->f_ffree;  // some file systems do not count inodes
    space->type = (int64_t)s->f_type & 0xFFFFFFFF;
}

int sluice_statfs(const char *path, struct sluice_space *space) {
    struct statfs s;
    if (statfs(path, &s) != 0) return -1;
    sluice_tell_space(&s, space);
    return 0;
}

int sluice_fstatfs(int file, struct sluice_space *space) {
    struct statfs s;
    if (fstatfs(file, &s) != 0) return -1;
    sluice_tell_space(&s, space);
    return 0;
}

int sluice_file_system_type(int file, int64_t *type) {
    struct statfs s;
    if (fstatfs(file, &s) != 0) return -1;
    *type = (int64_t)s.f_type & 0xFFFFFFFF;
    return 0;
}

int sluice_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
int sluice_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

int sluice_random(void *into, size_t count) {
    char *at = into;
    while (count > 0) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        at += got;
        count -= (size_t)got;
    }
    return 0;
}

int sluice_signalfd(const int *signals, int count) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < count; i++) sigaddset(&set, signals[i]);
    if ((errno = pthread_sigmask(SIG_BLOCK, &set, NULL)) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int sluice_ignores_signal(int signal) {
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

int sluice_next_signal(int descriptor) {
    struct signalfd_siginfo info;
    ssize_t got = read(descriptor, &info, sizeof info);
    if (got == sizeof info) return (int)info.ssi_signo;
    return got < 0 && errno != EAGAIN ? -1 : 0;
}

int sluice_fnmatch(const char *pattern, const char *text, int path_mode, int fold) {
    int flags = (path_mode ? FNM_PATHNAME : 0) | (fold ? FNM_CASEFOLD : 0);
    return fnmatch(pattern, text, flags) == 0 ? 0 : 1;
}

int sluice_peer_user(int socket, uint32_t *user, uint32_t *group) {
    struct ucred who;
    socklen_t length = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return -1;
    *user = who.uid;
    *group = who.gid;
    return 0;
}

void sluice_prepare_upload_socket(int socket, uint32_t timeout) {
    int on = 1, idle = 30, between = 10, unsent = 128 << 10;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

void sluice_reset_on_close(int socket) {
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &nothing};
    setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    unsigned slowest = 1;
    setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &slowest, sizeof slowest);
}
