// Preloaded into programs under ThreadSanitizer (LD_PRELOAD), so that it sees Swift's Mutex.
//
// If no thread waits, locking and unlocking a Mutex are atomic instructions in our own code, which is instrumented.
// If a thread waits, they are three functions of libswiftSynchronization, which is not instrumented: it spins or calls
// the kernel (FUTEX_LOCK_PI). ThreadSanitizer does not see that, and reports the accesses of two successive holders as
// a race. The functions below wrap those three and report an acquire or a release of the Mutex's word. This suppresses
// nothing: unguarded accesses are still reported.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// The runtime of an instrumented program defines these. Other programs that a test starts do not have them.
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

// Swift's calling convention (docs/ABI in swiftlang/swift): `self` in the context register. Names as in
// `nm -D libswiftSynchronization.so`: _MutexHandle._lockSlow(UInt32), ._tryLockSlow() and ._unlockSlow().
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

typedef SWIFT void Lock(uint32_t thread, SELF);
typedef SWIFT bool Try(SELF);
typedef SWIFT void Unlock(SELF);

Lock lock __asm__(LOCK);
Try try __asm__(TRY);
Unlock unlock __asm__(UNLOCK);

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

SWIFT void lock(uint32_t thread, SELF) {
    ((Lock *)next(LOCK))(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT bool try(SELF) {
    bool taken = ((Try *)next(TRY))(self);
    if (taken && __tsan_acquire) __tsan_acquire(self);
    return taken;
}

SWIFT void unlock(SELF) {
    if (__tsan_release) __tsan_release(self);
    ((Unlock *)next(UNLOCK))(self);
}
