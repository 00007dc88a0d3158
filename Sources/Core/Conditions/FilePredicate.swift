/// A question about a file. Once the file is staged, its answer does not change.
package enum FilePredicate: Hashable, Sendable {
    /// Bytes.
    case largerThan(Int64)
    /// Bytes.
    case smallerThan(Int64)
    case kind(Set<FileKind>)
    /// Milliseconds.
    case longerThan(Int64)

    /// - Returns: `nil` where the file does not tell.
    package func answer(of file: FileFacts) -> Bool? {
        switch self {
        case .largerThan(let bytes): file.size > bytes
        case .smallerThan(let bytes): file.size < bytes
        case .kind(let kinds): kinds.contains(file.kind)
        case .longerThan(let length):
            // Only recordings have a length.
            switch file.kind {
            case .video, .audio: file.duration.map { $0 > length }
            case .photo, .other: false
            }
        }
    }

    /// From its ``code``.
    package init?(code: String) {
        let words = code.split(separator: " ").map(String.init)
        guard words.count == 2 else { return nil }
        let number = Int64(words[1])
        switch (words[0], number) {
        case ("larger_than", let bytes?): self = .largerThan(bytes)
        case ("smaller_than", let bytes?): self = .smallerThan(bytes)
        case ("longer_than", let length?): self = .longerThan(length)
        case ("kind", _):
            self = .kind(Set(words[1].split(separator: ",").compactMap { FileKind(rawValue: String($0)) }))
        default: return nil
        }
    }

    /// Its name in the database: another question has another one.
    package var code: String {
        switch self {
        case .largerThan(let bytes): "larger_than \(bytes)"
        case .smallerThan(let bytes): "smaller_than \(bytes)"
        case .kind(let kinds): "kind \(kinds.map(\.rawValue).sorted().joined(separator: ","))"
        case .longerThan(let length): "longer_than \(length)"
        }
    }
}

/// What a file contains, by its name.
package enum FileKind: String, Hashable, Sendable, CaseIterable {
    case video, photo, audio
    /// Everything else, like a sidecar.
    case other

    package init(mediaType: String) {
        switch mediaType.prefix(while: { $0 != "/" }) {
        case "video": self = .video
        case "image": self = .photo
        case "audio": self = .audio
        default: self = mediaType == "application/mxf" ? .video : .other
        }
    }
}

/// The facts of a file that conditions ask for.
package struct FileFacts: Hashable, Sendable {
    /// Bytes to send.
    package var size: Int64
    package var kind: FileKind
    /// Of a recording, in milliseconds; `nil` where it could not be read.
    package var duration: Int64?

    package init(size: Int64, kind: FileKind, duration: Int64?) {
        self.size = size
        self.kind = kind
        self.duration = duration
    }
}

/// The file that a condition is judged for.
package enum FileAnswers: Hashable, Sendable {
    /// A request that sends no file: it is not larger than anything.
    case noFile
    /// These answers are known; every other question is open.
    case known([FilePredicate: Bool])
    /// A person has described the file, and these answers follow.
    case described([FilePredicate: Bool])
    /// All facts are known.
    case file(FileFacts)
    /// Some file: a restriction holds only if it holds for every file.
    case anyFile

    /// The answers for a file of which a person states some facts.
    package init(size: Int64?, kind: FileKind?, duration: Int64?, to questions: [FilePredicate]) {
        var answers: [FilePredicate: Bool] = [:]
        for question in questions {
            switch question {
            case .largerThan(let bytes): answers[question] = size.map { $0 > bytes }
            case .smallerThan(let bytes): answers[question] = size.map { $0 < bytes }
            case .kind(let kinds): answers[question] = kind.map { kinds.contains($0) }
            case .longerThan:
                answers[question] = kind.flatMap {
                    question.answer(of: FileFacts(size: size ?? 0, kind: $0, duration: duration))
                }
            }
        }
        self = .described(answers)
    }

    /// - Returns: `nil` where it is not known.
    package func answer(to question: FilePredicate) -> Bool? {
        switch self {
        case .noFile, .anyFile: false
        case .known(let answers), .described(let answers): answers[question]
        case .file(let facts): question.answer(of: facts)
        }
    }
}
