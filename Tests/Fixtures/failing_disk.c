// Preloaded into a daemon: a disk that fails. While the file named by FAULT_WHILE exists, reads beyond FAULT_FROM bytes of
// files whose path ends in FAULT_NAME fail with EIO.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file, long long end) {
    const char *name = getenv("FAULT_NAME"), *from = getenv("FAULT_FROM"), *flag = getenv("FAULT_WHILE");
    if (!name || !from || !flag || end <= atoll(from) || access(flag, F_OK) != 0) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t got = readlink(link, path, sizeof path);
    size_t length = strlen(name);
    return got >= (ssize_t)length && memcmp(path + got - length, name, length) == 0;
}

ssize_t pread(int file, void *into, size_t count, off_t offset) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real) real = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    if (fails(file, (long long)offset + (long long)count)) {
        errno = EIO;
        return -1;
    }
    return real(file, into, count, offset);
}

ssize_t pread64(int file, void *into, size_t count, off_t offset) { return pread(file, into, count, offset); }
