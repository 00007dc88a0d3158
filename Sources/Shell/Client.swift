internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Linux
internal import Transport

// What the verbs that talk to the daemon have in common.

extension Invocation {
    /// Where the daemon listens: `--socket`, else what the configuration says.
    func socket() async throws -> FilePath {
        if let path = arguments.path("socket") { return path }
        let file = ConfigurationFile(arguments, console)
        return try await file.socket()
    }

    /// Lends a client. The transport behind it is stopped afterwards.
    func withClient<R: Sendable>(_ body: (ControlClient) async throws -> R) async throws -> R {
        let transport = Transport()
        do {
            let result = try await body(ControlClient(socket: try await socket(), transport: transport))
            await transport.stop()
            return result
        } catch {
            await transport.stop()
            throw error
        }
    }

    /// `--json`: one object a line.
    func printJSON(_ value: some Encodable) throws { try console.line(try JSON.text(value)) }

    func now() -> WallTime { SystemClocks().wall() }
}

/// An operand that names an upload, as the daemon takes it.
///
/// Ids and keys are text. A path goes from the root on and as it is shown: one that begins with `/` or a dot, one with
/// bytes that no id or key has, and the name of a file that stands where the person does. Where nothing stands, an
/// escaped name was copied from what was shown.
func reference(_ operand: FilePath) throws -> String {
    let isNamed = operand.isAbsolute || operand.bytes.starts(with: "./".utf8) || operand.bytes.starts(with: "../".utf8)
    let path = try absolute(operand)
    // What cannot be looked at is no file that was meant; the daemon says whether it knows it.
    if let look = try? FileLook.ifPresent(at: path), look.isRegular { return path.display }
    guard isNamed || operand.text == nil else { return operand.lossyText }
    if let shown = operand.text.flatMap({ FilePath(display: $0) }) { return try absolute(shown).display }
    return path.display
}
