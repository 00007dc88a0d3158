/// A program that is run before an upload's first byte. It decides whether the file may be uploaded, and under which
/// name and metadata.
package struct BeforeUpload: Hashable, Sendable {
    /// The program and its arguments.
    package var command: [String]
    /// How long it may take to answer.
    package var timeout: Duration

    package init(command: [String], timeout: Duration = .seconds(10)) {
        self.command = command
        self.timeout = timeout
    }

    package enum Answer: Hashable, Sendable {
        case go(Changes)
        /// - Parameter duration: `nil` where it names none.
        case wait(Duration?, reason: String)
        case skip(reason: String)
    }

    /// Changes to the name and metadata that are sent.
    package struct Changes: Hashable, Sendable {
        /// The remote name; `nil` for no other.
        package var name: FilePath?
        /// Values that replace those with the same name, or are added.
        package var metadata: [String: String]
        package var context: [String: String]

        package init(name: FilePath? = nil, metadata: [String: String] = [:], context: [String: String] = [:]) {
            self.name = name
            self.metadata = metadata
            self.context = context
        }
    }
}

/// The problem with the context of an upload, as a text that follows its name; `nil` when there is none. Context is
/// shown in every list and event, so it must stay small: 16 names, values of 1 KiB, 8 KiB together.
package func contextProblem(_ context: [String: String]) -> String? {
    if context.count > 16 { return "takes at most 16 names, not \(context.count)" }
    for (name, value) in context {
        let isPlain = name.utf8.allSatisfy { $0.isLetterOrDigit(or: "_.-") }
        guard isPlain, (1...64).contains(name.utf8.count) else {
            return "takes names of 1 to 64 letters, digits, `_`, `.` and `-`, not `\(name.prefix(70))`"
        }
        if value.utf8.count > 1024 { return "takes values of at most 1 KiB; that of `\(name)` is longer" }
    }
    let total = context.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    return total > 8192 ? "takes at most 8 KiB in all, not \(total) bytes" : nil
}

/// The problem with the metadata of an upload, as a text that follows its name; `nil` when there is none. Names are
/// those of header fields: printable ASCII without space, comma and colon.
package func metadataProblem(_ metadata: [String: String]) -> String? {
    for (name, value) in metadata {
        let isFit = name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2C && $0 != 0x3A }
        guard isFit, (1...64).contains(name.utf8.count) else {
            return
                "takes names of 1 to 64 printable ASCII characters without space, comma or colon, not `\(name.prefix(70))`"
        }
        if value.utf8.count > 4096 { return "takes values of at most 4 KiB; that of `\(name)` is longer" }
    }
    return metadata.count > 64 ? "takes at most 64 names, not \(metadata.count)" : nil
}
