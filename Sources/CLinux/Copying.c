#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/fs.h>

int64_t sluice_next_data(int file, int64_t offset) { return lseek(file, offset, SEEK_DATA); }
int64_t sluice_next_hole(int file, int64_t offset) { return lseek(file, offset, SEEK_HOLE); }
int sluice_reserve_range(int file, int64_t offset, int64_t count) {
    return fallocate(file, FALLOC_FL_KEEP_SIZE, offset, count);
}
int sluice_is_zero(const void *bytes, size_t count) {
    const char *start = bytes;
    return count == 0 || (start[0] == 0 && memcmp(start, start + 1, count - 1) == 0);
}
int sluice_flush_range(int file, int64_t offset, int64_t count) {
    return sync_file_range(
        file, offset, count, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

// linux/ioprio.h: IOPRIO_WHO_PROCESS with 0 is the calling thread.
int sluice_io_priority(void) { return (int)syscall(SYS_ioprio_get, 1, 0); }
int sluice_set_io_priority(int priority) { return (int)syscall(SYS_ioprio_set, 1, 0, priority); }
