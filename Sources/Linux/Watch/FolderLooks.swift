internal import CLinux
package import Core
internal import Glibc

/// Names of one folder that are looked at together: where they are many, another thread looks at the first of them while
/// the next ones are still being listed.
///
/// What a look takes is the kernel's waiting for memory, or for a disk, and two of them wait at the same time.
package struct FolderLooks {
    private let line = LookLine()
    /// Full ones, in the order in which they were filled; ``LookLine`` has a look at them.
    private var full: [LookPiece] = []
    private var last = LookPiece()
    /// To be filled again.
    private var spare: [LookPiece] = []

    package init() {}

    package var isEmpty: Bool { full.isEmpty && last.names.isEmpty }

    /// - Parameters:
    ///   - tag: Given back with what the look showed.
    ///   - stream: The folder that has the name. The same for all names until ``look(in:_:)``, which has to come before it is
    ///     closed.
    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, tag: Int, in stream: FolderStream) {
        last.add(name, tag: tag)
        if last.isFull { handOver(stream) }
    }

    private mutating func handOver(_ stream: FolderStream) {
        last.folder = stream.number
        full.append(last)
        line.add(last)
        last = spare.popLast() ?? LookPiece()
    }

    /// Looks at all of them and forgets them, keeping the memory for the next ones.
    ///
    /// - Parameter body: Told of each in the order in which they were added; a look is `nil` when there is nothing any more.
    package mutating func look(
        in stream: FolderStream,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ tag: Int, _ look: Result<FileLook?, SystemError>) -> Void
    ) {
        for piece in full {
            line.finish(piece)
            piece.tell(in: stream, body)
            spare.append(piece)
        }
        full.removeAll(keepingCapacity: true)
        last.folder = stream.number
        last.look()
        last.tell(in: stream, body)
    }
}

/// Some names, and what was seen under them.
///
/// Its fields go without the check of overlapping accesses, which costs a tenth of a walk: each method uses them from its
/// beginning to its end, and what it calls meanwhile knows nothing of this object.
///
/// `@unchecked Sendable`, proof: one thread has it at a time. Who fills it hands it to a ``LookLine``; that gives it to one thread,
/// which looks and says so; and only then does who filled it touch it again. Each step is under the line's lock.
private final class LookPiece: @unchecked Sendable {
    struct Name {
        let start: Int
        let count: Int
        let tag: Int
    }

    private struct Answer {
        var look = sluice_look()
        /// 0 when there is a look.
        var code: CInt = 0
    }

    /// Few enough that nobody waits long for one, and enough that handing it over costs nothing beside its looks.
    private static let size = 128

    var folder: CInt = -1
    /// Each with its NUL.
    @exclusivity(unchecked) private var bytes: [UInt8] = []
    @exclusivity(unchecked) private(set) var names: [Name] = []
    @exclusivity(unchecked) private var answers = [Answer](repeating: Answer(), count: LookPiece.size)
    /// Its line's.
    var isDone = false

    var isFull: Bool { names.count == Self.size }

    func add(_ name: UnsafeBufferPointer<UInt8>, tag: Int) {
        names.append(Name(start: bytes.count, count: name.count, tag: tag))
        bytes.append(contentsOf: name)
        bytes.append(0)
    }

    func look() {
        bytes.withUnsafeBufferPointer { bytes in
            answers.withUnsafeMutableBufferPointer { answers in
                for (index, name) in names.enumerated() {
                    guard let start = bytes.baseAddress?.advanced(by: name.start) else { continue }
                    let answer = sluice_statx(folder, entryName(start), &answers[index].look)
                    answers[index].code = answer == 0 ? 0 : errno
                }
            }
        }
    }

    /// Forgets them then.
    func tell(
        in stream: FolderStream,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ tag: Int, _ look: Result<FileLook?, SystemError>) -> Void
    ) {
        bytes.withUnsafeBufferPointer { bytes in
            for (index, name) in names.enumerated() {
                let text = UnsafeBufferPointer(rebasing: bytes[name.start..<name.start + name.count])
                let answer = answers[index]
                if answer.code == 0 {
                    body(text, name.tag, .success(FileLook(answer.look)))
                } else {
                    let error = stream.failure(at: text, code: answer.code)
                    body(text, name.tag, error.isMissing ? .success(nil) : .failure(error))
                }
            }
        }
        bytes.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
        isDone = false
    }
}

/// Pieces that wait for somebody to look: another thread, or who filled them.
private final class LookLine: Sendable {
    private struct State {
        var waiting: [LookPiece] = []
        /// Another thread looks until nothing waits.
        var isServed = false
    }

    private static let hasSeveralProcessors = sysconf(CInt(_SC_NPROCESSORS_ONLN)) > 1
    private let state = Monitor(State())

    func add(_ piece: LookPiece) {
        let mustServe = state.withLock { state in
            state.waiting.append(piece)
            // A single one is looked at before another thread has woken up.
            if state.isServed || state.waiting.count < 2 || !Self.hasSeveralProcessors { return false }
            state.isServed = true
            return true
        }
        if mustServe { inBackground { self.serve() } }
    }

    private func serve() {
        while let piece = state.withLock({ state in
            state.isServed = !state.waiting.isEmpty
            return state.isServed ? state.waiting.removeFirst() : nil
        }) {
            piece.look()
            state.change { _ in piece.isDone = true }
        }
    }

    /// Returns when the piece was looked at. Helps until then.
    func finish(_ piece: LookPiece) {
        while case .look(let next) = state.wait({ state -> Step? in
            if piece.isDone { return .goOn }
            return state.waiting.isEmpty ? nil : .look(state.waiting.removeFirst())
        }) {
            next.look()
            state.withLock { _ in next.isDone = true }
        }
    }

    private enum Step {
        case look(LookPiece)
        case goOn
    }
}
