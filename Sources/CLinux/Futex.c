#include "CLinux.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void sluice_wait_for_change(uint32_t *number, uint32_t seen, int64_t nanoseconds) {
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    // Whatever it answers, the caller looks again: changed meanwhile, interrupted, over.
    syscall(SYS_futex, number, FUTEX_WAIT_PRIVATE, seen, nanoseconds < 0 ? 0 : &time, 0, 0);
}

void sluice_count_and_wake(uint32_t *number, int most) {
    // Atomic for the kernel's comparison alone: writers hold a lock.
    __atomic_add_fetch(number, 1, __ATOMIC_SEQ_CST);
    if (most > 0) syscall(SYS_futex, number, FUTEX_WAKE_PRIVATE, most, 0, 0, 0);
}
