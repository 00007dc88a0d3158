package import Core
package import Linux

/// Runs commands of credentials whose connections obey policy. The daemon provides it.
package protocol PolicedCommands: AnyObject, Sendable {
    /// - Parameter destination: Its rules apply, and the bytes are charged to it.
    /// - Throws: ``CommandHeldError``; errors of the program; `CancellationError`.
    func output(
        of program: Program, for destination: String, to servers: ProgramServers, atMost most: Int,
        within limit: Duration
    ) async throws -> [UInt8]
}

/// Policy has refused or stopped a connection of a command, or does not let it start.
package struct CommandHeldError: Error, CustomStringConvertible {
    package let description: String

    /// - Parameter hold: The text of the hold.
    package init(_ hold: String) { description = "policy holds its connections: \(hold)" }
}
