internal import Core
internal import Linux
internal import Synchronization

/// The sign-ins that ended before their time, by signing out. Each is forgotten when its time is over, and those that
/// would end first when there are too many.
///
/// What is forgotten must not be good again, also where the clock was wrong when it was forgotten. So the latest end of
/// them is kept, and every sign-in that would end until then is over. There is one such mark for each stretch of
/// ``WebSessions/lifetime``: with a single one, a clock that showed a far year would end all sign-ins until that year.
final class EndedSessions: Sendable {
    /// `nil`: they are kept for this run alone.
    private let file: FilePath?
    private let clocks: any Clocks
    private struct State {
        var ended: [String: WallTime] = [:]
        /// By the number of the stretch.
        var marks: [Int64: WallTime] = [:]

        mutating func forget(_ id: String) {
            guard let until = ended.removeValue(forKey: id) else { return }
            mark(until)
        }

        mutating func mark(_ until: WallTime) {
            let stretch = EndedSessions.stretch(of: until)
            marks[stretch] = max(marks[stretch] ?? until, until)
            // The earliest are those of times long past.
            while marks.count > EndedSessions.mostMarks, let first = marks.keys.min() { marks[first] = nil }
        }

        var text: String {
            let lines = ended.map { "\($0.key) \($0.value.milliseconds)\n" }
            let marks = marks.values.map { "\(EndedSessions.markWord) \($0.milliseconds)\n" }
            return (lines.sorted() + marks.sorted()).joined()
        }
    }
    private let state: Mutex<State>
    /// Held while the file is written, so that a later state is never replaced by an earlier one.
    private let writing = Mutex(())

    private static let most = 4_096
    private static let mostMarks = 64
    /// In place of an id.
    private static let markWord = "before"

    private static func stretch(of time: WallTime) -> Int64 {
        time.milliseconds / WebSessions.lifetime.inMilliseconds
    }

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
                guard words.count == 2, let until = Int64(words[1]) else { continue }
                if words[0] == Self.markWord {
                    known.mark(WallTime(milliseconds: until))
                } else {
                    known.ended[String(words[0])] = WallTime(milliseconds: until)
                }
            }
        }
        state = Mutex(known)
    }

    /// Whether a sign-in that would end by itself at `until` is over.
    func contains(_ id: String, until: WallTime) -> Bool {
        state.withLock { state in
            state.ended[id] != nil || state.marks[Self.stretch(of: until)].map { until <= $0 } == true
        }
    }

    /// Adds a sign-in; it has ended also if this throws, but only until the next restart. Waits for the disk.
    func add(_ id: String, until: WallTime) throws(SystemError) {
        let now = clocks.wall()
        state.withLock { state in
            state.ended[id] = until
            for (id, until) in state.ended where until <= now { state.forget(id) }
            while state.ended.count > Self.most, let first = state.ended.min(by: { $0.value < $1.value })?.key {
                state.forget(first)
            }
        }
        guard let file else { return }
        try writing.withLock { _ throws(SystemError) in
            try Files.replace(file, with: Array(state.withLock(\.text).utf8), mode: 0o600)
        }
    }
}
