internal import API
internal import Config
internal import Control
internal import Core
internal import Linux
internal import Transport

// Common parts of the verbs that talk to the daemon.

extension Invocation {
    /// The daemon's socket: `--socket`, or the one in the configuration.
    func socket() async throws -> FilePath {
        if let path = arguments.path("socket") { return path }
        let file = ConfigurationFile(arguments, console)
        return try await file.socket()
    }

    /// Lends a client. Its transport is stopped afterwards.
    ///
    /// - Parameter path: The socket, where it is known already.
    func withClient<R: Sendable>(
        at path: FilePath? = nil, _ body: (ControlClient) async throws -> R
    ) async throws -> R {
        let transport = Transport()
        do {
            let socket = if let path { path } else { try await socket() }
            let result = try await body(ControlClient(socket: socket, transport: transport))
            await transport.stop()
            return result
        } catch {
            await transport.stop()
            throw error
        }
    }

    /// `--json`: prints one object a line.
    func printJSON(_ value: some Encodable) throws { try console.raw(try JSON.text(value) + "\n") }

    func now() -> WallTime { SystemClocks().wall() }
}

/// An operand that names an upload, in the form that the daemon accepts.
///
/// Ids and keys are text. An operand is a path if it begins with `/` or a dot, contains bytes that no id or key has, or
/// is the name of a file in the person's current folder. A path is sent absolute and as it is shown. If there is no
/// such file, an escaped name was copied from the output.
func reference(_ operand: FilePath) throws -> String { try reference(operand, isMeant: \.isRegular) }

/// The same, where the name of a folder counts like that of a file.
func referenceOrFolder(_ operand: FilePath) throws -> String {
    try reference(operand) { $0.isRegular || $0.isDirectory }
}

private func reference(_ operand: FilePath, isMeant: (FileStatus) -> Bool) throws -> String {
    let isNamed = operand.isAbsolute || operand.bytes.starts(with: "./".utf8) || operand.bytes.starts(with: "../".utf8)
    let path = try absolute(operand)
    // An operand that cannot be read is not meant as a file; the daemon says whether it knows it.
    if let status = try? FileStatus.ifPresent(at: path), isMeant(status) { return path.display }
    guard isNamed || operand.text == nil else { return operand.lossyText }
    if let shown = operand.text.flatMap({ FilePath(display: $0) }) { return try absolute(shown).display }
    return path.display
}
