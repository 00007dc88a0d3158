#pragma once
// What Swift's Glibc module does not show: it is built without _GNU_SOURCE. Plain functions in CLinux.c,
// so that Swift sees no feature macros.
#include <stdint.h>
#include <stddef.h>

/// The fields of statx(2) that are used here. Times in nanoseconds since 1970; born is 0 with has_born 0 when unknown.
struct sluice_look {
    uint64_t device, inode;
    int64_t size, modified, changed, born, blocks;
    uint32_t mode, links, owner;
    int32_t has_born;
};

/// statx(2) of `path` relative to `folder`, not following a final symbolic link. An empty path looks at `folder` itself.
int sluice_statx(int folder, const char *path, struct sluice_look *look);

/// As sluice_statx, and a network file system asks its server (AT_STATX_FORCE_SYNC).
int sluice_statx_fresh(int folder, const char *path, struct sluice_look *look);

/// openat2(2) of a name below `folder` with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS: no symbolic link is
/// followed (ELOOP), and the name does not lead out (EXDEV). Mounts below are entered.
int sluice_open_beneath(int folder, const char *path, int flags, uint32_t mode);
/// openat2(2) of an absolute path in which no symbolic link is followed (ELOOP).
int sluice_open_without_links(const char *path, int flags);
/// O_PATH of open(2).
int sluice_path_flag(void);

int64_t sluice_copy_file_range(int in, int out, size_t count);
/// ioctl FICLONE: makes `out` share the blocks of `in`.
int sluice_clone(int out, int in);
/// renameat2(2) with RENAME_NOREPLACE.
int sluice_rename_no_replace(int from_folder, const char *from, int to_folder, const char *to);
/// fallocate(2) with FALLOC_FL_KEEP_SIZE.
int sluice_reserve(int file, int64_t size);
int sluice_sync_range(int file, int64_t offset, int64_t count);
/// As sluice_sync_range, and waits until they are written. The error that it returns is told once: no later fsync of
/// this descriptor repeats it.
int sluice_wait_range(int file, int64_t offset, int64_t count);
/// A file without a name in `folder` (O_TMPFILE), gone with its descriptor.
int sluice_nameless_file(int folder);
/// fcntl F_SETLEASE: 1 takes a read lease, 0 gives it back.
int sluice_read_lease(int file, int take);
/// Bytes and type of the file system that holds `path`.
struct sluice_space { int64_t total, free_to_us, files_free; int64_t type; };
int sluice_statfs(const char *path, struct sluice_space *space);
int sluice_fstatfs(int file, struct sluice_space *space);
/// `f_type` of the file system that holds an open file (fstatfs(2)).
int sluice_file_system_type(int file, int64_t *type);
int sluice_eventfd(void);
int sluice_set_thread_name(const char *name);
/// getrandom(2), whole or an error.
int sluice_random(void *into, size_t count);
/// Blocks `signals` in this thread (and those it starts) and returns a descriptor that reports them.
int sluice_signalfd(const int *signals, int count);
/// Whether this process ignores the signal: 1 or 0.
int sluice_ignores_signal(int signal);
/// The number of the next signal, 0 when there is none now, -1 with errno.
int sluice_next_signal(int descriptor);
/// Case-insensitive when `fold`. `path_mode`: `*` does not cross a slash. 0 match, 1 no match.
int sluice_fnmatch(const char *pattern, const char *text, int path_mode, int fold);
/// Effective user of the peer of a Unix socket.
int sluice_peer_user(int socket, uint32_t *user, uint32_t *group);
/// Keepalive, TCP_NOTSENT_LOWAT and TCP_USER_TIMEOUT (milliseconds). Options that the socket does not know are left out.
void sluice_prepare_upload_socket(int socket, uint32_t timeout);
/// SO_LINGER with a time of 0, and a filter that lets nothing in (SO_ATTACH_FILTER, socket(7)), and the slowest pace: without
/// acknowledgements a segment or two may still leave by timers, and no more.
void sluice_reset_on_close(int socket);
/// What the kernel has counted for a TCP connection (TCP_INFO, tcp(7)).
struct sluice_tcp_counts {
    /// Bytes of payload that left and came, what was sent again included.
    int64_t sent, received;
    /// Segments that left, and that came, whatever was in them.
    int64_t segments, incoming;
    /// Bytes in the buffer that have not left.
    int64_t unsent;
    /// Bytes in the buffer that the peer has not acknowledged (SIOCOUTQ, tcp(7)): those, and what is on its way.
    int64_t queued;
    /// 1 once the connection is over: nothing leaves the buffer any more.
    int over;
    /// Bytes of payload that the peer has acknowledged.
    int64_t acknowledged;
    /// Segments that left and are not acknowledged.
    int64_t unanswered;
    /// Payload of a full segment; IP and TCP header of any.
    int64_t largest, header;
    /// Grows whenever the peer may have told of gaps (selective acknowledgements); 1 in `gapped` while it tells of some; and what that adds
    /// to a header at the most.
    int64_t gaps, selective;
    int gapped;
    /// Bytes that came within a round trip of late.
    int64_t per_trip;
};
/// -1 with errno: EOPNOTSUPP where the kernel does not count bytes (before 4.19), or what is no TCP.
int sluice_tcp_counts(int socket, struct sluice_tcp_counts *counts);
/// The addresses of both ends as inet_ntop(3) writes them.
struct sluice_tcp_ends { char local[46], peer[46]; int local_port, peer_port; };
/// -1 with errno for what is no TCP, or not connected.
int sluice_tcp_ends(int socket, struct sluice_tcp_ends *ends);
/// The address of this end alone, in 46 bytes: known while it is being connected.
int sluice_tcp_local(int socket, char *into);
/// What tells a socket from every other that this machine has had since it started (SO_COOKIE, socket(7); Linux 4.12). -1 with errno.
int sluice_socket_cookie(int socket, uint64_t *cookie);
/// Both ways: whoever reads finds the end, whoever writes an error.
int sluice_shut_down(int socket);
/// SO_BINDTODEVICE (socket(7)). ENODEV when there is no such interface.
int sluice_bind_to_interface(int socket, const char *name);
/// SO_KEEPALIVE.
void sluice_keep_alive(int socket, int on);
void sluice_mark_packets(int socket, int traffic_class);
/// A socket that listens on 127.0.0.1, on a port that the kernel chooses, which is stored; -1 with errno.
int sluice_listen_on_loopback(uint16_t *port);
/// A connection that waits at a listening socket; never blocks. -1 with errno.
int sluice_accept(int socket);
/// A TCP socket for an address (4 or 16 bytes), which never blocks and receives at most 512 KiB ahead; bound to the interface where
/// one is named. -1 with errno.
int sluice_stream_socket(size_t count, const char *interface);
/// Begins to connect. -1 with errno: EINPROGRESS while it is under way.
int sluice_connect(int socket, const void *address, size_t count, uint16_t port);
/// SO_ERROR: why connecting has failed; 0 for no failure.
int sluice_socket_error(int socket);
/// send(2) without a signal. -1 with errno.
int64_t sluice_send(int socket, const void *bytes, size_t count);
/// SHUT_WR of shutdown(2).
int sluice_finish_sending(int socket);

/// As sluice_statx, following symbolic links.
int sluice_statx_following(const char *path, struct sluice_look *look);
/// The number of the mount that holds `path` relative to `folder` (the folder itself for an empty path), as in mountinfo;
/// 0 when the kernel does not tell (before 5.8).
uint64_t sluice_mount_number(int folder, const char *path);
/// The same, of which no later mount gets it; 0 when the kernel does not tell (before 6.8).
uint64_t sluice_unique_mount_number(int folder, const char *path);
/// The 16 bytes of the UUID of the file system that holds an open file (FS_IOC_GETFSUUID, Linux 6.9; Btrfs's
/// own question on any).
int sluice_file_system_uuid(int file, uint8_t *uuid);
uint64_t sluice_device_number(uint32_t major, uint32_t minor);

// Swift's concurrency runtime lets a program replace the pool that runs its tasks (`swift_task_enqueueGlobal_hook` and
// its like, since Swift 5.5; include/swift/Runtime/Concurrency.h of the compiler).

/// Replaces the runtime's own pool, which is libdispatch's. Call it before the first task.
///
/// `now` gets a job that may run at once, `later` one that may run at `nanoseconds` on CLOCK_BOOTTIME.
/// Both are called on any thread, and hand the job to `sluice_run_job` in the end, once.
void sluice_take_over_tasks(void (*now)(void *job), void (*later)(void *job, int64_t nanoseconds));
void sluice_run_job(void *job);

/// A timer on CLOCK_BOOTTIME, whose descriptor becomes readable when it goes off.
int sluice_timer(void);
/// Sets it to go off once, at `nanoseconds` on that clock, in place of what was set before; 0 for never.
void sluice_set_timer(int timer, int64_t nanoseconds);
int64_t sluice_boot_time(void);
/// A descriptor of which each read(2) fails with ECANCELED when somebody has set the wall clock (timerfd_create(2),
/// `TFD_TIMER_CANCEL_ON_SET`), and waits until then.
int sluice_clock_watch(void);
/// Whether somebody has told the kernel that its clock is right (adjtimex(2), no `STA_UNSYNC`).
int sluice_clock_is_kept(void);

/// Gives memory back that nothing needs now: free pieces of the heap, and the mapping of code that has not run lately
/// (all of it: what runs again is mapped again from the page cache).
void sluice_give_back_memory(void);

/// fsetxattr(2) and fgetxattr(2), whose header Swift's Glibc module leaves out.
int sluice_set_attribute(int file, const char *name, const void *value, size_t count);
int64_t sluice_get_attribute_at(const char *path, const char *name, void *into, size_t count);
int64_t sluice_get_attribute(int file, const char *name, void *into, size_t count);

/// Sleeps while `*number` is `seen` (futex(2), FUTEX_WAIT): until it is woken, for nothing now and then, or for
/// `nanoseconds` on CLOCK_MONOTONIC; a negative time is for ever.
void sluice_wait_for_change(uint32_t *number, uint32_t seen, int64_t nanoseconds);
/// Counts `*number` up and wakes at most `most` of those who sleep on it.
void sluice_count_and_wake(uint32_t *number, int most);

/// lseek(2) with SEEK_DATA and SEEK_HOLE.
int64_t sluice_next_data(int file, int64_t offset);
int64_t sluice_next_hole(int file, int64_t offset);
/// As sluice_reserve, for a part of the file.
int sluice_reserve_range(int file, int64_t offset, int64_t count);
/// Whether there is nothing but zeros.
int sluice_is_zero(const void *bytes, size_t count);
/// ioprio_get(2) and ioprio_set(2) of this thread.
int sluice_io_priority(void);
int sluice_set_io_priority(int priority);

/// A user with whose rights a program is started, and no others.
struct sluice_user {
    uint32_t user, group;
    /// Supplementary groups.
    const uint32_t *groups;
    size_t count;
    /// Keeps CAP_LEASE where this process has it.
    int keeps_lease;
};

/// The limits of a program that decodes a file of strangers. It reads that file, its own and shared libraries, writes to what is
/// open, starts nothing, and has no network.
struct sluice_decoder {
    /// Bytes of memory that it can allocate (RLIMIT_DATA), and of all that it maps, with code and libraries (RLIMIT_AS).
    uint64_t memory, addresses;
    /// Seconds of a processor.
    uint32_t seconds;
};
/// How a program is held to one TCP port: what sluice_spawn sets before the program begins, for it and all that it starts.
struct sluice_confinement {
    /// The only TCP port that it may connect to, at any address. It may bind none.
    uint16_t port;
    /// By Landlock (landlock(7), ABI 4).
    int holds_tcp;
    /// A filter of calls (seccomp(2)) that leaves it Unix sockets and TCP.
    int filters_calls;
    /// In place of all of these; NULL for other programs. It does not start where the kernel has no Landlock or seccomp.
    const struct sluice_decoder *decoder;
};
/// The version of Landlock that the kernel has switched on; 0 for none.
int sluice_landlock_abi(void);
/// 1 where this process may set a filter of calls for its programs.
int sluice_has_call_filter(void);
/// Confines the calling process for good. `program` and `file`, which a decoder may read: -1 for no file. System calls and
/// nothing more; -1 with errno.
int sluice_confine(const struct sluice_confinement *confinement, const char *program, int file);

/// Starts a program, looked up in PATH, in a process group of its own, which the kernel kills when the calling thread ends.
/// Its standard input is `input`; it has `lent` under the same number, unless that is -1. `words` and `environment` end with NULL.
/// With a `user`, it runs as that user; with a `confinement`, it is held to it. -1 with errno when it cannot be started.
int sluice_spawn(
    const char *const *words, const char *const *environment, const char *folder, int input, int output,
    int errors, int lent, const struct sluice_user *user, const struct sluice_confinement *confinement);
/// Starts the program at the path `words[0]` with the standard descriptors and the environment of this process, in its process
/// group, with no signal blocked or ignored. `words` ends with NULL. -1 with errno when it cannot be started.
int sluice_spawn_on_terminal(const char *const *words);
/// A file in memory (memfd_create(2)) with these bytes, to be read from its start; closed by exec.
int sluice_input(const void *bytes, size_t count);
/// Lets this process open as many files as it may (RLIMIT_NOFILE). What sluice_spawn starts has what we were started with:
/// a program that goes through all descriptors it could have would take its time.
int sluice_raise_open_files(void);
/// PR_SET_DUMPABLE of prctl(2) with 0: no core file, and no other process of this user may look into this one.
int sluice_forbid_dumps(void);
/// A pipe whose reading end never waits. Both ends are closed by exec.
int sluice_pipe(int *ends);

/// A netlink(7) socket of `protocol`, with an address of its own. Reading waits 10 s for an answer, or not at all.
int sluice_netlink(int protocol, int waits);
/// NETLINK_ADD_MEMBERSHIP.
int sluice_netlink_join(int socket, int group);
int sluice_netlink_leave(int socket, int group);
/// Sends to the kernel.
int64_t sluice_netlink_send(int socket, const void *message, size_t count);
/// One datagram: its whole length, of which at most `count` bytes were stored. `sender` is 0 for the kernel.
int64_t sluice_netlink_receive(int socket, void *into, size_t count, uint32_t *sender);
/// Driver and place on its bus (`usb-0000:00:14.0-1`) of a network interface (ETHTOOL_GDRVINFO), in 32 bytes each.
int sluice_link_driver(const char *name, char *driver, char *bus);
/// 1 where the kernel may hand a link many TCP segments as one, with one header (ETHTOOL_GTSO), and where nobody can tell.
int sluice_link_joins_segments(const char *name);
/// Sends an empty datagram to an address (4 or 16 bytes) on the link, to UDP port 9.
int sluice_touch(int link, const void *address, size_t count);
/// The longest packet that the kernel would send to an address (4 or 16 bytes) as one, as a socket is told that is held to the link where that
/// is not 0 (IP_MTU, ip(7)); -1 with errno. Nothing is sent.
int sluice_path_mtu(int link, const void *address, size_t count, int port);
/// Gives this thread, and what it starts, a network of its own with nothing in it (unshare(2)), and
/// returns the thread's number; for tests.
int sluice_leave_network(void);
