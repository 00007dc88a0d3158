package import Core
internal import FoundationEssentials
internal import Linux

/// Asks a program whether an upload may start.
package enum ApprovalProgram {
    /// Maximum size of an answer in bytes.
    static let longest = 64 << 10
    /// The longest wait, even if the program asks for more: after it the program is asked again.
    static let longestWait: Duration = .seconds(7 * 86_400)

    /// Why there is no answer, as a text that follows the program's place. It never contains the program's standard
    /// error.
    package struct NoAnswerError: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    /// - Parameter upload: Its standard input, as JSON.
    /// - Throws: ``NoAnswerError``; `CancellationError` when the task was cancelled, and the program killed.
    package static func run(_ rule: BeforeUpload, about upload: [UInt8]) async throws -> BeforeUpload.Answer {
        let program = Program(
            words: rule.command.map { Array($0.utf8) }, environment: Program.plainEnvironment, folder: "/",
            input: upload)
        do { return try answer(try await program.awaitOutput(atMost: longest, within: rule.timeout)) } catch let problem
            as Program.Problem
        {
            throw NoAnswerError(description: problem.description)
        }
    }

    private struct Written: Decodable {
        var answer: String
        var `for`: String?
        var reason: String?
        var name: String?
        var metadata: [String: String]?
        var context: [String: String]?
    }

    /// The keys of an answer, known or not.
    private struct Keys: Decodable {
        struct Key: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        static let known: Set<String> = ["answer", "for", "reason", "name", "metadata", "context"]
        /// The first unknown key, which may be a misspelt known one.
        let unknownKey: String?

        init(from decoder: any Decoder) throws {
            let keys = try decoder.container(keyedBy: Key.self).allKeys.map(\.stringValue)
            unknownKey = keys.filter { !Self.known.contains($0) }.min()
        }
    }

    /// Reads the output of a program. An empty output allows the upload.
    static func answer(_ bytes: [UInt8]) throws(NoAnswerError) -> BeforeUpload.Answer {
        if bytes.allSatisfy({ [0x20, 0x0A, 0x0D, 0x09].contains($0) }) { return .go(.init()) }
        let (written, strange): (Written, String?)
        do {
            try checkJSON(bytes)
            written = try JSONDecoder().decode(Written.self, from: Data(bytes))
            strange = try JSONDecoder().decode(Keys.self, from: Data(bytes)).unknownKey
        } catch {
            throw NoAnswerError(description: "it printed no answer like `{\"answer\": \"go\"}`")
        }
        if let strange {
            throw NoAnswerError(
                description: "its answer has a key `\(printable(String(strange.prefix(70))))`; there are "
                    + Keys.known.sorted().joined(separator: ", "))
        }
        let reason = printable(String((written.reason ?? "").prefix(500)))
        switch written.answer {
        case "go": return .go(try changes(written))
        case "skip": return .skip(reason: reason.isEmpty ? "it gave no reason" : reason)
        case "wait":
            guard let text = written.for else { return .wait(nil, reason: reason) }
            guard let seconds = seconds(in: text) else {
                throw NoAnswerError(
                    description:
                        "its `for` is `\(printable(String(text.prefix(70))))`, and takes a time like `90s` or `10m`")
            }
            return .wait(min(.seconds(seconds), longestWait), reason: reason)
        default:
            throw NoAnswerError(
                description:
                    "its `answer` is `\(printable(String(written.answer.prefix(70))))`; there are go, wait, skip")
        }
    }

    private static func changes(_ written: Written) throws(NoAnswerError) -> BeforeUpload.Changes {
        let changes = BeforeUpload.Changes(
            name: try written.name.map { name throws(NoAnswerError) in try self.name(name) },
            metadata: written.metadata ?? [:], context: written.context ?? [:])
        for (key, problem) in [
            ("metadata", metadataProblem(changes.metadata)), ("context", contextProblem(changes.context)),
        ] {
            if let problem { throw NoAnswerError(description: "its `\(key)` \(printable(problem))") }
        }
        return changes
    }

    /// Like a `remote_name`: a path below the place of the destination.
    private static func name(_ text: String) throws(NoAnswerError) -> FilePath {
        let path = FilePath(text)
        let parts = path.components
        guard !text.isEmpty, text.utf8.count <= 4096, !text.hasPrefix("/"), !text.hasSuffix("/"),
            !parts.contains("."), !parts.contains(".."), !text.utf8.contains(0), printable(text) == text
        else {
            throw NoAnswerError(
                description: "its `name` is not a path below the destination, like `door/2026/a.mp4`")
        }
        return parts.reduce(FilePath("")) { $0.appending($1) }
    }
}
