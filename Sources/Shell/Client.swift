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

/// An operand that names an upload, as the daemon takes it. Ids and keys are text; a path goes as it is shown, and may
/// be relative to where the person stands when it begins with a dot.
func reference(_ operand: FilePath) throws -> String {
    let isRelative = operand.bytes.starts(with: "./".utf8) || operand.bytes.starts(with: "../".utf8)
    if isRelative || operand.isAbsolute { return try absolute(operand).display }
    return operand.lossyText
}
