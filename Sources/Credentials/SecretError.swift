package import Core

/// A secret that could not be read: its source, the reason, and what to do. Never its content.
package struct SecretError: Error, Hashable, Sendable, CustomStringConvertible {
    /// For people: `the file /etc/sluice/token`.
    package let source: String
    package let problem: String
    package let remedy: String
    /// A part of a process that may be different in another one.
    package enum ProcessPart: String, Hashable, Sendable { case environment, credentials }

    /// Policy holds the command that prints it.
    package let isHeld: Bool
    /// The part of this process that lacks it; `nil` for any other problem.
    package let lackingPart: ProcessPart?
    /// The key of the configuration that takes it; `nil` where the caller names it.
    private var key: String?

    init(
        _ source: SecretSource, _ problem: String, remedy: String, isHeld: Bool = false,
        lackingPart: ProcessPart? = nil
    ) {
        self.isHeld = isHeld
        self.lackingPart = lackingPart
        self.source = source.shown
        self.problem = problem
        self.remedy = remedy
    }

    package var description: String { (key.map { "`\($0)`: " } ?? "") + reason }

    /// The description without the key.
    package var reason: String { "the secret from \(source) cannot be used: \(problem); \(remedy)" }

    /// The same for the secret that a key of the configuration takes.
    func of(key: String?) -> SecretError {
        var error = self
        if let key { error.key = key }
        return error
    }
}

extension SecretSource {
    /// The source for people, without the secret.
    package var shown: String {
        switch self {
        case .file(let path): "the file \(path.display)"
        case .environment(let name): "the environment variable \(FilePath(name).display)"
        case .credential(let name): "the systemd credential \(FilePath(name).display)"
        // Arguments may themselves be secret, so only the program is named.
        case .command(let words, _): "the command \(FilePath(words.first ?? "").display)"
        case .literal, .json: "the configuration"
        }
    }
}
