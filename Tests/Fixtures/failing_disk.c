// Preloaded into a daemon: a source that fails. While the file named by FAULT_WHILE exists, files whose path ends in
// FAULT_NAME (and lead through a folder FAULT_FOLDER, if that is set) cannot be opened (FAULT_KIND=EACCES), or reads beyond FAULT_FROM bytes of them fail (FAULT_KIND=EIO).
// With FAULT_KIND=LOST a sync of such a file fails once, the flag goes, and what should have reached the disk is zeros from
// then on: the kernel tells of a write error once, forgets the pages, and calls the next sync a success (fsync(2)).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_on(const char *kind) {
    const char *wanted = getenv("FAULT_KIND"), *flag = getenv("FAULT_WHILE");
    return wanted && flag && strcmp(wanted, kind) == 0 && access(flag, F_OK) == 0;
}

static int is_meant(const char *path, size_t length) {
    const char *name = getenv("FAULT_NAME"), *folder = getenv("FAULT_FOLDER");
    if (folder && *folder) {
        char part[256];
        int size = snprintf(part, sizeof part, "/%s/", folder);
        if (size < 0 || !memmem(path, length, part, (size_t)size)) return 0;
    }
    return name && length >= strlen(name) && memcmp(path + length - strlen(name), name, strlen(name)) == 0;
}

static int is_open(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t got = readlink(link, path, sizeof path);
    return got > 0 && is_meant(path, (size_t)got);
}

static int read_fails(int file, long long end) {
    const char *from = getenv("FAULT_FROM");
    return from && end > atoll(from) && is_on("EIO") && is_open(file);
}

static int sync_fails(int file) {
    if (!is_on("LOST") || !is_open(file)) return 0;
    static const char zeros[4096];
    (void)!pwrite(file, zeros, sizeof zeros, 0);
    unlink(getenv("FAULT_WHILE"));
    errno = EIO;
    return 1;
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return sync_fails(file) ? -1 : real(file);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return sync_fails(file) ? -1 : real(file);
}

ssize_t pread(int file, void *into, size_t count, off_t offset) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real) real = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    if (read_fails(file, (long long)offset + (long long)count)) {
        errno = EIO;
        return -1;
    }
    return real(file, into, count, offset);
}

ssize_t pread64(int file, void *into, size_t count, off_t offset) { return pread(file, into, count, offset); }

int openat(int folder, const char *path, int flags, ...) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (is_meant(path, strlen(path)) && is_on("EACCES")) {
        errno = EACCES;
        return -1;
    }
    return real(folder, path, flags, mode);
}

// openat2(2), which has no function of its own in the C library.
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_list more;
    va_start(more, number);
    long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long), d = va_arg(more, long),
         e = va_arg(more, long), f = va_arg(more, long);
    va_end(more);
    const char *path = (const char *)b;
    if (number == SYS_openat2 && is_meant(path, strlen(path)) && is_on("EACCES")) {
        errno = EACCES;
        return -1;
    }
    return real(number, a, b, c, d, e, f);
}
