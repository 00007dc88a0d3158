internal import Glibc
internal import Linux

/// Removes the remains of a run that was killed or has trapped: its temporary folders, and the mounts below them.
///
/// A shell that waits for this process to end, in any way, and finds nothing left after a run that ended regularly.
enum Caretaker {
    /// The beginning of the paths of this process's temporary folders. Starts the shell at the first use.
    static let prefix: String = {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        let prefix = "\(folder)/sluice-test-\(getpid())-"
        // Without it a killed run leaves its folders, and everything else works.
        try? start(prefix)
        return prefix
    }()

    /// Our end of its input, which no child inherits, is closed when this process ends.
    private static let script = """
        read -r _
        for folder in "$1"*; do
            [ -d "$folder" ] || continue
            while read -r _ place _; do
                case $place in "$folder"/*) umount -l "$place" ;; esac
            done </proc/mounts
            rm -rf --one-file-system "$folder"
        done
        """

    private static func start(_ prefix: String) throws(SystemError) {
        var ends: [CInt] = [-1, -1]
        try systemCall("socketpair", on: "caretaker") {
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends)
        }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        for number in [CInt(1), 2] { posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_WRONLY, 0) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A group of its own: signals from the terminal to the run, Ctrl-C too, do not reach it.
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        let words = ["/bin/sh", "-c", script, "caretaker", prefix]
        var arguments = words.map { strdup($0) } + [nil]
        var variables = [strdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin"), nil]
        defer { for text in arguments + variables { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, words[0], &actions, &attributes, &arguments, &variables)
        if code != 0 {
            close(ends[1])
            throw SystemError(call: "posix_spawn", subject: words[0], code: code)
        }
    }
}
