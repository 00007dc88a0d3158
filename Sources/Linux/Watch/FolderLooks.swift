internal import CLinux
package import Core
internal import Glibc

/// Reads the status of many names in one folder: where there are many, another thread reads the first ones while the
/// next are still being listed.
///
/// A status call mostly waits for memory or for a disk, and two of them can wait at the same time.
package struct FolderLooks {
    private let line = LookLine()
    /// Full pieces, in the order in which they were filled; ``LookLine`` refers to them.
    private var full: [LookPiece] = []
    private var last = LookPiece()
    /// Empty pieces, to be filled again.
    private var spare: [LookPiece] = []

    package init() {}

    package var isEmpty: Bool { full.isEmpty && last.names.isEmpty }

    /// - Parameters:
    ///   - tag: Returned with the status.
    ///   - stream: The folder that contains the name. It is the same for all names until ``look(in:_:)``, which has to
    ///     be called before it is closed.
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

    /// Reads the status of all names and forgets them, keeping the memory for the next ones.
    ///
    /// - Parameter body: Called for each in the order in which they were added; the status is `nil` when the name no
    ///   longer exists.
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

/// Some names, and their status.
///
/// Its fields have no check of overlapping accesses, which would cost a tenth of a walk: each method uses them from its
/// beginning to its end, and the functions that it calls do not know this object.
///
/// `@unchecked Sendable`, proof: one thread has it at a time. The thread that fills it passes it to a ``LookLine``.
/// That passes it to one thread, which reads the status and reports the end. Only then does the first thread access it
/// again. Each step holds the line's lock.
private final class LookPiece: @unchecked Sendable {
    struct Name {
        let start: Int
        let count: Int
        let tag: Int
    }

    private struct Answer {
        var look = sluice_look()
        /// 0 when the status was read.
        var code: CInt = 0
    }

    /// Small enough that no thread waits long for one, and large enough that passing it on costs nothing compared with
    /// its status calls.
    private static let size = 128

    var folder: CInt = -1
    /// Each with its NUL.
    @exclusivity(unchecked) private var bytes: [UInt8] = []
    @exclusivity(unchecked) private(set) var names: [Name] = []
    @exclusivity(unchecked) private var answers = [Answer](repeating: Answer(), count: LookPiece.size)
    /// Protected by the line's lock.
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

    /// Reports the status of each name and forgets the names.
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

/// Pieces that wait for a thread: another thread, or the one that filled them.
private final class LookLine: Sendable {
    private struct State {
        var waiting: [LookPiece] = []
        /// Another thread works until no piece waits.
        var isServed = false
    }

    private static let hasSeveralProcessors = sysconf(CInt(_SC_NPROCESSORS_ONLN)) > 1
    private let state = Monitor(State())

    func add(_ piece: LookPiece) {
        let mustServe = state.withLock { state in
            state.waiting.append(piece)
            // A single piece is done before another thread would have woken up.
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

    /// Returns when the piece is done. Works on pieces until then.
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
