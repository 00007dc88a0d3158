internal import Core
internal import Linux
internal import Synchronization

/// The sign-ins that ended before their time, by signing out. Each is forgotten when its time is over.
final class EndedSessions: Sendable {
    /// `nil`: they are kept for this run alone.
    private let file: FilePath?
    private let clocks: any Clocks
    private let ended: Mutex<[String: WallTime]>
    /// Held while the file is written, so that a later state is never replaced by an earlier one.
    private let writing = Mutex(())

    /// The most that are kept; the ones that would end first give way.
    private static let most = 4_096

    /// For this run alone.
    init(clocks: any Clocks) {
        file = nil
        self.clocks = clocks
        ended = Mutex([:])
    }

    /// - Throws: When there is a file that cannot be read: a sign-in that ended must not be good again.
    init(in file: FilePath, clocks: any Clocks) throws(SystemError) {
        self.file = file
        self.clocks = clocks
        var known: [String: WallTime] = [:]
        if let status = try FileStatus.ifPresent(at: file) {
            // Opening a pipe would wait for a writer.
            guard status.isRegular else { throw SystemError.notRegular(file) }
            for line in String(decoding: try Files.read(file), as: UTF8.self).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard words.count == 2, let until = Int64(words[1]) else { continue }
                known[String(words[0])] = WallTime(milliseconds: until)
            }
        }
        ended = Mutex(known)
    }

    func contains(_ id: String) -> Bool { ended.withLock { $0[id] != nil } }

    /// Adds a sign-in; it has ended also if this throws, but only until the next restart. Waits for the disk.
    func add(_ id: String, until: WallTime) throws(SystemError) {
        let now = clocks.wall()
        ended.withLock { ended in
            ended[id] = until
            ended = ended.filter { $0.value > now }
            while ended.count > Self.most, let first = ended.min(by: { $0.value < $1.value })?.key {
                ended[first] = nil
            }
        }
        guard let file else { return }
        try writing.withLock { _ throws(SystemError) in
            let lines = ended.withLock { $0.map { "\($0.key) \($0.value.milliseconds)\n" }.sorted() }
            try Files.replace(file, with: Array(lines.joined().utf8), mode: 0o600)
        }
    }
}
