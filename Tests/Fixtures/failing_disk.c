// Preloaded into a daemon: a source that fails. While the file named by FAULT_WHILE exists, files whose path ends in
// FAULT_NAME cannot be opened (FAULT_KIND=EACCES), or reads beyond FAULT_FROM bytes of them fail (FAULT_KIND=EIO).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_on(const char *kind) {
    const char *wanted = getenv("FAULT_KIND"), *flag = getenv("FAULT_WHILE");
    return wanted && flag && strcmp(wanted, kind) == 0 && access(flag, F_OK) == 0;
}

static int is_meant(const char *path, size_t length) {
    const char *name = getenv("FAULT_NAME");
    return name && length >= strlen(name) && memcmp(path + length - strlen(name), name, strlen(name)) == 0;
}

static int read_fails(int file, long long end) {
    const char *from = getenv("FAULT_FROM");
    if (!from || end <= atoll(from) || !is_on("EIO")) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t got = readlink(link, path, sizeof path);
    return got > 0 && is_meant(path, (size_t)got);
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
