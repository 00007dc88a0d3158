internal import CLinux
package import Core
internal import Glibc

/// Reads the status of many names in one folder: where there are many, another thread reads the first ones while the
/// next are still being listed.
///
/// A status call mostly waits for memory or for a disk, and two of them can wait at the same time.
package struct FolderStatusReader {
    private let queue = StatusBatchQueue()
    /// Full pieces, in the order in which they were filled; ``StatusBatchQueue`` refers to them.
    private var full: [StatusBatch] = []
    private var last = StatusBatch()
    /// Empty pieces, to be filled again.
    private var spare: [StatusBatch] = []

    package init() {}

    package var isEmpty: Bool { full.isEmpty && last.names.isEmpty }

    /// - Parameters:
    ///   - tag: Returned with the status.
    ///   - stream: The folder that contains the name. It is the same for all names until ``read(in:_:)``, which has to
    ///     be called before it is closed.
    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, tag: Int, in stream: FolderStream) {
        last.add(name, tag: tag)
        if last.isFull { handOver(stream) }
    }

    private mutating func handOver(_ stream: FolderStream) {
        last.folder = stream.number
        full.append(last)
        queue.add(last)
        last = spare.popLast() ?? StatusBatch()
    }

    /// Reads the status of all names and forgets them, keeping the memory for the next ones.
    ///
    /// - Parameter body: Called for each in the order in which they were added; the status is `nil` when the name no
    ///   longer exists.
    package mutating func read(
        in stream: FolderStream,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ tag: Int, _ status: Result<FileStatus?, SystemError>) -> Void
    ) {
        for piece in full {
            queue.finish(piece)
            piece.reportStatuses(in: stream, body)
            spare.append(piece)
        }
        full.removeAll(keepingCapacity: true)
        last.folder = stream.number
        last.read()
        last.reportStatuses(in: stream, body)
    }
}

/// Some names, and their status.
///
/// Its fields have no check of overlapping accesses, which would cost a tenth of a walk: each method uses them from its
/// beginning to its end, and the functions that it calls do not know this object.
///
/// `@unchecked Sendable`, proof: one thread has it at a time. The thread that fills it passes it to a ``StatusBatchQueue``.
/// That passes it to one thread, which reads the status and reports the end. Only then does the first thread access it
/// again. Each step holds the line's lock.
private final class StatusBatch: @unchecked Sendable {
    struct Name {
        let start: Int
        let count: Int
        let tag: Int
    }

    private struct Answer {
        var status = sluice_look()
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
    @exclusivity(unchecked) private var answers = [Answer](repeating: Answer(), count: StatusBatch.size)
    /// Protected by the line's lock.
    var isDone = false

    var isFull: Bool { names.count == Self.size }

    func add(_ name: UnsafeBufferPointer<UInt8>, tag: Int) {
        names.append(Name(start: bytes.count, count: name.count, tag: tag))
        bytes.append(contentsOf: name)
        bytes.append(0)
    }

    func read() {
        bytes.withUnsafeBufferPointer { bytes in
            answers.withUnsafeMutableBufferPointer { answers in
                for (index, name) in names.enumerated() {
                    guard let start = bytes.baseAddress?.advanced(by: name.start) else { continue }
                    let answer = sluice_statx(folder, entryName(start), &answers[index].status)
                    answers[index].code = answer == 0 ? 0 : errno
                }
            }
        }
    }

    /// Reports the status of each name and forgets the names.
    func reportStatuses(
        in stream: FolderStream,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ tag: Int, _ status: Result<FileStatus?, SystemError>) -> Void
    ) {
        bytes.withUnsafeBufferPointer { bytes in
            for (index, name) in names.enumerated() {
                let text = UnsafeBufferPointer(rebasing: bytes[name.start..<name.start + name.count])
                let answer = answers[index]
                if answer.code == 0 {
                    body(text, name.tag, .success(FileStatus(answer.status)))
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
private final class StatusBatchQueue: Sendable {
    private struct State {
        var waiting: [StatusBatch] = []
        /// Another thread works until no piece waits.
        var isServed = false
    }

    private static let hasSeveralProcessors = sysconf(CInt(_SC_NPROCESSORS_ONLN)) > 1
    private let state = ConditionLock(State())

    func add(_ piece: StatusBatch) {
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
            piece.read()
            state.change { _ in piece.isDone = true }
        }
    }

    /// Returns when the piece is done. Works on pieces until then.
    func finish(_ piece: StatusBatch) {
        while case .read(let next) = state.wait({ state -> Step? in
            if piece.isDone { return .goOn }
            return state.waiting.isEmpty ? nil : .read(state.waiting.removeFirst())
        }) {
            next.read()
            state.withLock { _ in next.isDone = true }
        }
    }

    private enum Step {
        case read(StatusBatch)
        case goOn
    }
}
