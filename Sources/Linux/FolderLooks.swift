internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// Names of one folder that are looked at together: where they are many, two threads share them.
///
/// What a look takes is the kernel's waiting for memory, or for a disk, and two of them wait at the same time.
package struct FolderLooks {
    private struct Name {
        let start: Int
        let count: Int
        let tag: Int
    }

    fileprivate struct Answer {
        var look = sluice_look()
        /// 0 when there is a look.
        var code: CInt = 0
    }

    /// Fewer are looked at before another thread has woken up.
    private static let least = 128

    /// Each with its NUL.
    private var bytes: [UInt8] = []
    private var names: [Name] = []
    private var answers: [Answer] = []

    package init() {}

    package var isEmpty: Bool { names.isEmpty }

    /// - Parameter tag: Given back with what the look showed.
    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, tag: Int) {
        names.append(Name(start: bytes.count, count: name.count, tag: tag))
        bytes.append(contentsOf: name)
        bytes.append(0)
    }

    /// Looks at all of them and forgets them, keeping the memory for the next ones.
    ///
    /// - Parameter body: Told of each in the order in which they were added; a look is `nil` when there is nothing any more.
    package mutating func look(
        in stream: FolderStream,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ tag: Int, _ look: Result<FileLook?, SystemError>) -> Void
    ) {
        if answers.count < names.count { answers = Array(repeating: Answer(), count: names.count) }
        bytes.withUnsafeBufferPointer { bytes in
            names.withUnsafeBufferPointer { names in
                answers.withUnsafeMutableBufferPointer { answers in
                    let round = Round(folder: stream.number, bytes: bytes, names: names, answers: answers)
                    if names.count >= Self.least && Self.hasSeveralProcessors { inBackground { round.work() } }
                    round.work()
                    round.waitForAll()
                    for (name, answer) in zip(names, answers) {
                        let text = UnsafeBufferPointer(rebasing: bytes[name.start..<name.start + name.count])
                        body(text, name.tag, stream.result(of: answer, named: text))
                    }
                }
            }
        }
        bytes.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
    }

    private static let hasSeveralProcessors = sysconf(CInt(_SC_NPROCESSORS_ONLN)) > 1

    /// One sharing of the names, a few at a time.
    ///
    /// `@unchecked Sendable`, proof: all but the answers is only read; of these and of the lent memory a thread touches only what
    /// belongs to the names that it took from `next`, which nobody else gets; and who lends the memory waits in
    /// ``waitForAll()`` until all that were taken are done. A thread that comes later finds none to take, and touches nothing.
    private final class Round: @unchecked Sendable {
        private static let few = 32

        private let folder: CInt
        private let bytes: UnsafeBufferPointer<UInt8>
        private let names: UnsafeBufferPointer<Name>
        private let answers: UnsafeMutableBufferPointer<Answer>
        private let count: Int
        private let next = Atomic(0)
        private let done = Monitor(0)

        init(
            folder: CInt, bytes: UnsafeBufferPointer<UInt8>, names: UnsafeBufferPointer<Name>,
            answers: UnsafeMutableBufferPointer<Answer>
        ) {
            self.folder = folder
            self.bytes = bytes
            self.names = names
            self.answers = answers
            count = names.count
        }

        func work() {
            while true {
                let first = next.wrappingAdd(Self.few, ordering: .relaxed).oldValue
                if first >= count { return }
                let range = first..<min(first + Self.few, count)
                for index in range {
                    guard let start = bytes.baseAddress?.advanced(by: names[index].start) else { continue }
                    let answer = sluice_statx(folder, entryName(start), &answers[index].look)
                    answers[index].code = answer == 0 ? 0 : errno
                }
                done.change { $0 += range.count }
            }
        }

        func waitForAll() { done.wait { $0 == count ? () : nil } }
    }
}

extension FolderStream {
    fileprivate func result(
        of answer: FolderLooks.Answer, named name: UnsafeBufferPointer<UInt8>
    ) -> Result<FileLook?, SystemError> {
        if answer.code == 0 { return .success(FileLook(answer.look)) }
        let error = failure(at: name, code: answer.code)
        return error.isMissing ? .success(nil) : .failure(error)
    }
}
