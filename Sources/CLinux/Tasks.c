#include "CLinux.h"
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>

// Swift's own calling convention, which clang knows by this name.
#define SWIFT __attribute__((swiftcall))

typedef SWIFT void (*job_taker)(void *job);
typedef SWIFT void (*delayed_taker)(uint64_t delay, void *job);
typedef SWIFT void (*dated_taker)(
    long long seconds, long long nanoseconds, long long tolerance_seconds, long long tolerance_nanoseconds, int clock,
    void *job);

extern SWIFT void (*swift_task_enqueueGlobal_hook)(void *job, job_taker original);
extern SWIFT void (*swift_task_enqueueGlobalWithDelay_hook)(uint64_t delay, void *job, delayed_taker original);
extern SWIFT void (*swift_task_enqueueGlobalWithDeadline_hook)(
    long long seconds, long long nanoseconds, long long tolerance_seconds, long long tolerance_nanoseconds, int clock,
    void *job, dated_taker original);
// The executor is two words; both zero is the generic one.
extern SWIFT void swift_job_run(void *job, void *executor, uintptr_t implementation);

static void (*run_now)(void *job);
static void (*run_later)(void *job, int64_t nanoseconds);

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Deadlines come from Swift's clocks and may be "never": they stay within what the sum can hold.
static int64_t sum(int64_t a, int64_t b) {
    int64_t both;
    return __builtin_add_overflow(a, b, &both) ? INT64_MAX : both;
}

static SWIFT void take_now(void *job, job_taker original) {
    (void)original;
    run_now(job);
}

static SWIFT void take_delayed(uint64_t delay, void *job, delayed_taker original) {
    (void)original;
    run_later(job, sum(read_clock(CLOCK_BOOTTIME), delay > INT64_MAX ? INT64_MAX : (int64_t)delay));
}

static SWIFT void take_dated(
    long long seconds, long long nanoseconds, long long tolerance_seconds, long long tolerance_nanoseconds, int clock,
    void *job, dated_taker original) {
    (void)tolerance_seconds;
    (void)tolerance_nanoseconds;
    (void)original;
    int64_t at;
    if (__builtin_mul_overflow((int64_t)seconds, (int64_t)1000000000, &at)) at = seconds < 0 ? 0 : INT64_MAX;
    at = sum(at, nanoseconds);
    // swift_clock_id_continuous is 1 and CLOCK_BOOTTIME here; swift_clock_id_suspending is 2 and CLOCK_MONOTONIC.
    if (clock == 2) at = sum(at, read_clock(CLOCK_BOOTTIME) - read_clock(CLOCK_MONOTONIC));
    run_later(job, at);
}

void sluice_take_over_tasks(void (*now)(void *job), void (*later)(void *job, int64_t nanoseconds)) {
    run_now = now;
    run_later = later;
    swift_task_enqueueGlobal_hook = take_now;
    swift_task_enqueueGlobalWithDelay_hook = take_delayed;
    swift_task_enqueueGlobalWithDeadline_hook = take_dated;
}

void sluice_run_job(void *job) { swift_job_run(job, 0, 0); }

int sluice_timer(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC); }

void sluice_set_timer(int timer, int64_t nanoseconds) {
    if (nanoseconds < 0) nanoseconds = 1;
    struct itimerspec time = {.it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
    // Cannot fail: the descriptor is a timer and the time is in order.
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &time, 0);
}

int sluice_clock_is_kept(void) {
    struct timex state = {0};
    return adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
}

int sluice_clock_watch(void) {
    int timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
    // No date that a clock can show: only a clock that is set ends the wait.
    struct itimerspec never = {.it_value = {.tv_sec = INT64_C(1) << 40}};
    if (timer >= 0) timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, 0);
    return timer;
}

int64_t sluice_boot_time(void) { return read_clock(CLOCK_BOOTTIME); }
