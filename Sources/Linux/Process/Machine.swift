internal import CLinux
internal import Core
internal import Glibc

/// Facts about the kernel, and about this process.
package enum Machine {
    /// In the form of uname(2): `6.12.43`.
    package static var kernel: String {
        var names = utsname()
        // Cannot fail: the address is ours.
        uname(&names)
        return withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// The number of this process (getpid(2)).
    package static var process: Int32 { getpid() }

    /// Identifies this boot of the machine (random(4), `boot_id`); `nil` if `/proc` does not report it.
    package static var boot: String? {
        guard let text = try? Files.read("/proc/sys/kernel/random/boot_id", limit: 64) else { return nil }
        return String(decoding: text.prefix { $0 > 0x20 }, as: UTF8.self)
    }

    /// Occupies the numbers of standard input, output and error where the caller has closed them. Otherwise the next
    /// opened files would get them, and messages for a person would be written into those files. The replacement for
    /// input cannot be read, and the one for output cannot be written, so that their users notice that they are closed.
    package static func occupyStandardDescriptors() {
        for number in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(number, F_GETFD) < 0 {
            // The lowest free number is this one. If even this cannot be opened, no other file can be either.
            _ = open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// A right that root has and other users may be given (capabilities(7)), by its bit.
    package enum Capability: UInt64, Sendable {
        /// Listing and reading in spite of permissions, including the descriptors of other users' processes.
        case readEverything = 2  // CAP_DAC_READ_SEARCH
        case ptrace = 19
        case lease = 28
    }

    /// Whether this process has it; `nil` if `/proc` does not report it.
    package static func has(_ capability: Capability) -> Bool? {
        ProcessRights()?.has(capability)
    }

    /// The user with whose rights this process works (geteuid(2)).
    package static var user: String {
        let number = geteuid()
        return UserDatabase.name(of: number) ?? "\(number)"
    }

    /// Raises this process's limit of descriptors to the maximum, before it has threads. Programs that it starts get
    /// the original limit.
    ///
    /// - Returns: `false` when the kernel refuses; then the limit is as before.
    @discardableResult
    package static func raiseOpenFileLimit() -> Bool { sluice_raise_open_files() == 0 }

    /// Protects this process's memory, which contains secrets, from core files and from other processes of its user.
    /// The process can still read its own `/proc/self`. `SLUICE_DUMPABLE=1` in the environment disables this, for tests
    /// and diagnosis.
    package static func forbidDumps() {
        if let set = getenv("SLUICE_DUMPABLE"), strcmp(set, "1") == 0 { return }
        // Cannot fail: the kernel accepts 0.
        _ = sluice_forbid_dumps()
    }

    /// The largest allowed file size of this process, in bytes (getrlimit(2), `RLIMIT_FSIZE`); `nil` for any size.
    package static var fileSizeLimit: UInt64? {
        var limit = rlimit()
        // Cannot fail: the address is ours.
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        return limit.rlim_cur == rlim_t.max ? nil : UInt64(limit.rlim_cur)
    }

    /// How many descriptors a process may have (getrlimit(2), `RLIMIT_NOFILE`), now and after it raises the limit.
    package static var openFileLimit: (now: UInt64, most: UInt64) {
        var limit = rlimit()
        // Cannot fail: the address is ours.
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return (UInt64(limit.rlim_cur), UInt64(limit.rlim_max))
    }
}
