internal import CLinux
internal import Core
internal import Glibc

/// What the kernel says of itself and of this process's rights.
package enum Machine {
    /// As uname(2) has it: `6.12.43`.
    package static var kernel: String {
        var names = utsname()
        // Cannot fail: the address is ours.
        uname(&names)
        return withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// Tells this start of the machine from every other (random(4), `boot_id`); `nil` where `/proc` does not say.
    package static var boot: String? {
        guard let text = try? Files.read("/proc/sys/kernel/random/boot_id", limit: 64) else { return nil }
        return String(decoding: text.prefix { $0 > 0x20 }, as: UTF8.self)
    }

    /// Occupies the numbers of standard input, output and error where the caller has closed them: else the next files that are
    /// opened would have them, and what is meant for a person would be written into those. What is opened there can be
    /// neither read, as input, nor written, as output, so that whoever needs them learns that they are closed.
    package static func occupyStandardDescriptors() {
        for number in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(number, F_GETFD) < 0 {
            // The lowest free number is this one. Where even that cannot be opened, nothing else can be either.
            _ = open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// A right that root has and others may be given (capabilities(7)), by its bit.
    package enum Capability: UInt64, Sendable {
        /// To list and read what permissions keep from this user: among it the descriptors of other users' processes.
        case readEverything = 2  // CAP_DAC_READ_SEARCH
        case ptrace = 19
        case lease = 28
    }

    /// Whether this process has it; `nil` where `/proc` does not say.
    package static func has(_ capability: Capability) -> Bool? {
        ProcessRights()?.has(capability)
    }

    /// The user with whose rights this process works (geteuid(2)).
    package static var user: String {
        let number = geteuid()
        return Accounts.name(of: number) ?? "\(number)"
    }

    /// Lets this process have as many descriptors as it may, before it has threads. Programs that it starts have as many as it
    /// was started with.
    ///
    /// - Returns: `false` when the kernel does not let it; then it has as many as before.
    @discardableResult
    package static func raiseOpenFileLimit() -> Bool { sluice_raise_open_files() == 0 }

    /// Keeps this process's memory, in which secrets are, from core files and from other processes of its user. What it reads of
    /// itself in `/proc/self` stays readable to it. `SLUICE_DUMPABLE=1` in the environment leaves it as it is, for tests and diagnosis.
    package static func forbidDumps() {
        if let set = getenv("SLUICE_DUMPABLE"), strcmp(set, "1") == 0 { return }
        // Cannot fail: 0 is a value that the kernel takes.
        _ = sluice_forbid_dumps()
    }

    /// How large a file of this process may get, in bytes (getrlimit(2), `RLIMIT_FSIZE`); `nil` for any size.
    package static var fileSizeLimit: UInt64? {
        var limit = rlimit()
        // Cannot fail: the address is ours.
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        return limit.rlim_cur == rlim_t.max ? nil : UInt64(limit.rlim_cur)
    }

    /// How many descriptors a process may have (getrlimit(2), `RLIMIT_NOFILE`), now and when it asks for more.
    package static var openFileLimit: (now: UInt64, most: UInt64) {
        var limit = rlimit()
        // Cannot fail: the address is ours.
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return (UInt64(limit.rlim_cur), UInt64(limit.rlim_max))
    }
}
