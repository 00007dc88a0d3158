/// The answers of a file to all questions of the configuration, as one text: files with the same text are treated
/// alike, so that policy is decided once for all of them, and no row is read for it.
package struct FileMask: Hashable, Sendable, Comparable {
    /// Empty for a file that has not been asked: it is not staged yet, or the questions have changed.
    package let text: String

    package init(_ text: String) { self.text = text }

    package static let unknown = FileMask("")

    package static func < (one: FileMask, other: FileMask) -> Bool { one.text < other.text }
}

/// The distinct questions of a configuration about files, in the order of their answers in a ``FileMask``.
package struct FileQuestions: Hashable, Sendable {
    /// A configuration may have no more: each of them may double the number of classes.
    package static let limit = 32

    /// Counts the changes of the list: a mask of another number answers other questions.
    package let number: Int
    package let list: [FilePredicate]
    private let prefix: String

    package init(number: Int = 0, _ list: [FilePredicate] = []) {
        self.number = number
        self.list = list
        prefix = "\(number):"
    }

    package func mask(of file: FileFacts) -> FileMask {
        if list.isEmpty { return .unknown }
        return FileMask(
            prefix
                + String(
                    list.map { question -> Character in
                        switch question.answer(of: file) {
                        case true?: "1"
                        case false?: "0"
                        case nil: "?"
                        }
                    }))
    }

    /// Whether a mask answers these questions.
    package func areAnswered(by mask: FileMask) -> Bool {
        list.isEmpty || mask.text.hasPrefix(prefix) && mask.text.utf8.count == prefix.utf8.count + list.count
    }

    /// The answers in a mask. Those in a mask of other questions are not known.
    package func answers(in mask: FileMask) -> FileAnswers {
        guard !list.isEmpty, areAnswered(by: mask) else { return .known([:]) }
        var known: [FilePredicate: Bool] = [:]
        for (question, answer) in zip(list, mask.text.dropFirst(prefix.count)) where answer != "?" {
            known[question] = answer == "1"
        }
        return .known(known)
    }
}

/// The files of a folder that no condition tells apart.
package struct FileClass: Sendable, Hashable, Comparable {
    package var folder: String
    package var mask: FileMask

    package init(folder: String, mask: FileMask) {
        self.folder = folder
        self.mask = mask
    }

    package static func < (one: Self, other: Self) -> Bool { (one.folder, one.mask) < (other.folder, other.mask) }
}
