package import Core
internal import Glibc
package import Linux
internal import Synchronization

/// Reads secrets from their sources, again each time: they change while the daemon runs.
package struct SecretReader: Sendable {
    /// A larger file is probably the wrong one.
    static let limit = 64 << 10

    /// The values that it has read.
    package let known: KnownSecrets
    private let variable: @Sendable (String) -> String?
    private let timeout: Duration
    private let age = Age()
    /// The owner that uses this copy; `nil` for none.
    private var owner: String?

    /// Runs commands whose connections obey policy. Shared by the copies of one reader.
    private final class Policing: Sendable {
        /// It belongs to the daemon, which has this reader.
        struct Owned { weak var commands: (any PolicedCommands)? }
        let owned = Mutex(Owned())
    }
    private let policing = Policing()

    /// How often secrets were declared out of date. Shared by the copies of one reader.
    private final class Age: Sendable {
        let all = Atomic(0)
        let byOwner = Mutex<[String: Int]>([:])
    }

    /// The sources that ``learn(texts:sources:)`` still reads. Shared by the copies of one reader.
    private final class Learning: Sendable {
        private let sources = Mutex<Set<SecretSource>>([])

        /// - Returns: False while an earlier reading of it has not ended, as on a disk that does not answer.
        func begin(_ source: SecretSource) -> Bool { sources.withLock { $0.insert(source).inserted } }
        func end(_ source: SecretSource) { _ = sources.withLock { $0.remove(source) } }
    }
    private let learning = Learning()

    /// - Parameters:
    ///   - known: Gets the values that it reads.
    ///   - variable: The environment.
    ///   - timeout: Time limit of a command.
    package init(
        known: KnownSecrets = KnownSecrets(),
        variable: @escaping @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } },
        timeout: Duration = .seconds(30)
    ) {
        self.known = known
        self.variable = variable
        self.timeout = timeout
    }

    /// The same reader for one owner, whose secrets ``renew(of:)`` declares out of date.
    package func of(_ owner: String) -> SecretReader {
        var reader = self
        reader.owner = owner
        return reader
    }

    /// From now on, commands with servers run in this way, for as long as the caller keeps `commands`. Without it, as in a
    /// check without a daemon, they have no network at all.
    package func police(by commands: any PolicedCommands) { policing.owned.withLock { $0.commands = commands } }

    /// Runs a program that gives credentials.
    ///
    /// - Parameter servers: For a program whose connections obey policy.
    package func output(
        of program: Program, to servers: ProgramServers?, atMost most: Int, within limit: Duration
    ) async throws -> [UInt8] {
        guard let servers else { return try await program.awaitOutput(atMost: most, within: limit) }
        guard let owner, let commands = policing.owned.withLock({ $0.commands }) else {
            return try await outputWithoutNetwork(of: program, atMost: most, within: limit)
        }
        return try await commands.output(of: program, for: owner, to: servers, atMost: most, within: limit)
    }

    /// Only a daemon has the proxy through which such a command may connect.
    private func outputWithoutNetwork(
        of program: Program, atMost most: Int, within limit: Duration
    ) async throws -> [UInt8] {
        guard Confinement.Support.here.isComplete else {
            throw CommandHeldError(
                "it has `network: policy`, and only the running daemon can run it: `sluice check --running` asks that")
        }
        var program = program
        // No connection leads to the port 0.
        program.confinement = Confinement(port: 0)
        do { return try await program.awaitOutput(atMost: most, within: limit) } catch {
            throw CommandHeldError(
                "\(error); it has `network: policy`, and without the daemon it has no network: `sluice check --running` "
                    + "asks the running daemon")
        }
    }

    /// Declares all secrets out of date, so that their users read them again.
    package func renew() { age.all.add(1, ordering: .relaxed) }
    /// The same for the secrets of one owner.
    package func renew(of owner: String) { age.byOwner.withLock { $0[owner, default: 0] += 1 } }
    /// Grows with every ``renew()``, and with every ``renew(of:)`` of this reader's owner.
    var renewals: Int {
        let own = owner.map { owner in age.byOwner.withLock { $0[owner] ?? 0 } } ?? 0
        return age.all.load(ordering: .relaxed) + own
    }

    /// Returns the text without one final line end, which editors add to a file; everything else stays.
    ///
    /// - Throws: ``SecretError``, also for a secret that is empty, longer than 64 KiB, or not UTF-8.
    package func read(_ source: SecretSource) async throws(SecretError) -> Secret {
        switch source {
        case .json:
            throw SecretError(source, "it is an object with several secrets", remedy: "take each by itself")
        case .literal(let text):
            return try checked(Array(text.utf8), source)
        case .environment(let name):
            guard let text = variable(name) else {
                throw SecretError(
                    source, "it is not set", remedy: "set it where the daemon is started", lackingPart: .environment)
            }
            return try checked(Array(text.utf8), source)
        case .file(let path):
            return try checked(try await content(of: path, source), source)
        case .credential(let name):
            guard let folder = variable("CREDENTIALS_DIRECTORY") else {
                throw SecretError(
                    source, "no credentials were passed to this process",
                    remedy: "start it by systemd, with LoadCredential=\(FilePath(name).display):… in its unit",
                    lackingPart: .credentials)
            }
            guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")), name != ".", name != ".." else {
                throw SecretError(
                    source, "that is not a valid name of a credential", remedy: "give the name in LoadCredential=")
            }
            return try checked(try await content(of: FilePath(folder).appending(FilePath(name)), source), source)
        case .command(let words, let servers):
            let environment = ["PATH", "HOME", "LANG", "CREDENTIALS_DIRECTORY"].compactMap { name in
                variable(name).map { "\(name)=\($0)" }
            }
            let program = Program(words: words.map { Array($0.utf8) }, environment: environment, folder: "/")
            do {
                return try checked(
                    try await output(of: program, to: servers, atMost: Self.limit, within: timeout), source)
            } catch let error as SecretError {
                throw error
            } catch let held as CommandHeldError {
                throw SecretError(source, "\(held)", remedy: "it runs again when that is over", isHeld: true)
            } catch {
                throw SecretError(source, "\(error)", remedy: "run it by hand as the daemon's user")
            }
        }
    }

    /// Makes the secrets of a configuration known in place of those of the one before, so that texts of programs can be
    /// covered from now on. Programs are not run for that. A secret that cannot be read is reported where it is used; a
    /// disk that does not answer delays the caller for two seconds in all, and keeps one thread for each file.
    ///
    /// - Parameter texts: What the configuration itself says that may be secret.
    package func learn(texts: [String], sources: [SecretSource]) async {
        known.replaceConfiguration(texts: texts, sources: sources)
        await withTaskGroup(of: Void.self) { group in
            for source in Set(sources) {
                if case .command = source { continue }
                guard learning.begin(source) else { continue }
                group.addTask {
                    _ = try? await awaiting(atMost: .seconds(2)) {
                        defer { self.learning.end(source) }
                        _ = try await self.read(source)
                    }
                }
            }
        }
    }

    private func content(of path: FilePath, _ source: SecretSource) async throws(SecretError) -> [UInt8] {
        do {
            return try await blocking {
                // Secrets are often symbolic links to the version of the day, which `Files.read` refuses.
                guard let resolved = path.withCString({ realpath($0, nil) }) else {
                    throw SystemError(call: "open", subject: path.display, code: errno)
                }
                defer { free(resolved) }
                let target = FilePath(bytes: UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
                return try Files.read(target, limit: Self.limit)
            }
        } catch let error as SystemError {
            if error.isMissing {
                throw SecretError(source, "it does not exist", remedy: "create it, readable by the daemon's user only")
            }
            if error.isDenied {
                throw SecretError(source, "the daemon may not read it", remedy: "make it readable by the daemon's user")
            }
            if error.code == EFBIG {
                throw SecretError(source, "it is larger than 64 KiB", remedy: "check that it is the right file")
            }
            throw SecretError(source, error.reason, remedy: "check that it is a readable file")
        } catch {
            throw SecretError(source, "it cannot be read", remedy: "check that it is a readable file")
        }
    }

    private func checked(_ bytes: [UInt8], _ source: SecretSource) throws(SecretError) -> Secret {
        var bytes = bytes
        if bytes.last == UInt8(ascii: "\n") {
            bytes.removeLast()
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        }
        if bytes.isEmpty { throw SecretError(source, "it is empty", remedy: "put the secret in it") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SecretError(source, "it is not UTF-8 text", remedy: "check that it is the right one")
        }
        known.remember(text, from: source)
        return Secret(text)
    }
}
