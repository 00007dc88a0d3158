internal import Core
internal import Linux
internal import Synchronization

/// The sign-ins that ended before their time, by signing out. An id is forgotten when its time is over, or when its
/// owner has too many: then the one that would end first.
///
/// A forgotten sign-in must stay ended, also where the clock was wrong when it was forgotten. So each owner has a mark,
/// the latest end of its forgotten sign-ins, and every sign-in of this owner that would end until then is over. There
/// is one such mark for each stretch of ``WebSessions/lifetime``: with a single one, a clock that showed a far year
/// would end all sign-ins until that year. A mark never ends the sign-ins of another owner, so a client that signs out
/// again and again signs out itself alone.
final class EndedSessions: Sendable {
    /// Whose sign-ins one mark may end: those of one token, or of one user's links.
    private struct Owner: Hashable {
        var client: ControlClientIdentity
        var origin: WebSessions.Origin

        init(_ session: WebSessions.Session) { (client, origin) = (session.client, session.origin) }

        /// - Parameter text: Of ``text``; `nil` for anything else.
        init?(text: Substring) {
            let fields = text.split(separator: ".", omittingEmptySubsequences: false)
            guard fields.count == 3, let origin = WebSessions.Origin(rawValue: String(fields[0])),
                let role = ControlRole(rawValue: String(fields[1])), let name = bytes(hexadecimal: String(fields[2]))
            else { return nil }
            self.origin = origin
            client = ControlClientIdentity(name: String(decoding: name, as: UTF8.self), role: role)
        }

        var text: String {
            "\(origin.rawValue).\(client.role.rawValue).\(hexadecimal(Array(client.name.utf8)))"
        }
    }

    private struct Ended {
        /// When each would end, by its id.
        var ids: [String: WallTime] = [:]
        /// By the number of the stretch.
        var marks: [Int64: WallTime] = [:]

        func contains(_ session: WebSessions.Session) -> Bool {
            if ids[session.id] != nil { return true }
            return marks[Self.stretch(of: session.until)].map { session.until <= $0 } == true
        }

        mutating func prune(at now: WallTime) {
            for (id, until) in ids where until <= now { forget(id, until) }
            while ids.count > EndedSessions.most, let (id, until) = ids.min(by: { $0.value < $1.value }) {
                forget(id, until)
            }
        }

        private mutating func forget(_ id: String, _ until: WallTime) {
            ids[id] = nil
            mark(until)
        }

        mutating func mark(_ until: WallTime) {
            let stretch = Self.stretch(of: until)
            marks[stretch] = max(marks[stretch] ?? until, until)
            // The earliest are those of times long past.
            while marks.count > EndedSessions.mostMarks, let first = marks.keys.min() { marks[first] = nil }
        }

        private static func stretch(of time: WallTime) -> Int64 {
            time.milliseconds / WebSessions.lifetime.inMilliseconds
        }
    }

    private struct State {
        var owners: [Owner: Ended] = [:]
        /// The number of changes.
        var changes = 0

        var text: String {
            owners.flatMap { owner, ended in
                ended.ids.map { "\($0.key) \($0.value.milliseconds) \(owner.text)\n" }
                    + ended.marks.values.map { "\(EndedSessions.markWord) \($0.milliseconds) \(owner.text)\n" }
            }.sorted().joined()
        }
    }

    /// `nil`: they are kept for this run alone.
    private let file: FilePath?
    private let clocks: any Clocks
    private let state: Mutex<State>
    /// How many changes are in the file. Held while it is written, so that a later state is never replaced by an
    /// earlier one.
    private let written = Mutex(0)

    /// The most ids and marks of one owner: they bound the file, and so the work of each sign-out.
    static let most = 256
    private static let mostMarks = 16
    /// In place of an id.
    private static let markWord = "before"

    /// For this run alone.
    init(clocks: any Clocks) {
        file = nil
        self.clocks = clocks
        state = Mutex(State())
    }

    /// - Throws: When there is a file that cannot be read: a sign-in that ended must not be good again.
    init(in file: FilePath, clocks: any Clocks) throws(SystemError) {
        self.file = file
        self.clocks = clocks
        var known = State()
        if let status = try FileStatus.ifPresent(at: file) {
            // Opening a pipe would wait for a writer.
            guard status.isRegular else { throw SystemError.notRegular(file) }
            for line in String(decoding: try Files.read(file), as: UTF8.self).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard words.count == 3, let milliseconds = Int64(words[1]), let owner = Owner(text: words[2]) else {
                    continue
                }
                let until = WallTime(milliseconds: milliseconds)
                if words[0] == Self.markWord {
                    known.owners[owner, default: Ended()].mark(until)
                } else {
                    known.owners[owner, default: Ended()].ids[String(words[0])] = until
                }
            }
        }
        state = Mutex(known)
    }

    /// Whether a sign-in is over.
    func contains(_ session: WebSessions.Session) -> Bool {
        state.withLock { $0.owners[Owner(session)]?.contains(session) == true }
    }

    /// Adds a sign-in; it has ended also if this throws, but only until the next restart. Waits for the disk.
    func add(_ session: WebSessions.Session) throws(SystemError) {
        let now = clocks.wall()
        let change = state.withLock { state in
            state.owners[Owner(session), default: Ended()].ids[session.id] = session.until
            for owner in state.owners.keys { state.owners[owner]?.prune(at: now) }
            state.changes += 1
            return state.changes
        }
        guard let file else { return }
        try written.withLock { written throws(SystemError) in
            // Of several that wait for the file, the first writes for all.
            if written >= change { return }
            let (text, changes) = state.withLock { ($0.text, $0.changes) }
            try Files.replace(file, with: Array(text.utf8), mode: 0o600)
            written = changes
        }
    }
}
