import Core
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// Runs the built program on a terminal, and types answers.
struct Typist {
    private static let python: FilePath = "/usr/bin/python3"
    let folder: FilePath

    static var isPossible: Bool { access("/usr/bin/python3", X_OK) == 0 }

    /// The program that was built beside this test.
    static var program: FilePath {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlink("/proc/self/exe", $0, buffer.count) } ?? -1
        }
        return FilePath(bytes: buffer.prefix(max(0, count))).parent.appending("sluice")
    }

    /// - Parameter steps: Words that are waited for, and what is typed then; `nil` kills the program.
    /// - Returns: The program's status, and what the terminal showed.
    func type(
        _ steps: [(String, String?)], _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> (status: Child.Ending, shown: String) {
        let script = try JSONSerialization.data(withJSONObject: steps.map { [$0.0, $0.1 ?? NSNull()] as [Any] })
        let name = hexadecimal(Random.bytes(4))
        let child = try Child(
            Self.python,
            [
                Repository.root.appending("Tests/Fixtures/typist.py").display, String(decoding: script, as: UTF8.self),
                Self.program.display,
            ] + arguments, environment: environment,
            output: folder.appending(FilePath(name + ".out")), errors: folder.appending(FilePath(name + ".err")))
        let ending = try await child.end(within: .seconds(90))
        return (ending, try child.standardOutput() + child.standardError())
    }

    /// Without a terminal.
    func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> (
        status: Child.Ending, output: String, errors: String
    ) {
        let name = hexadecimal(Random.bytes(4))
        let child = try Child(
            Self.program, arguments, environment: environment, output: folder.appending(FilePath(name + ".out")),
            errors: folder.appending(FilePath(name + ".err")))
        let ending = try await child.end(within: .seconds(60))
        return (ending, try child.standardOutput(), try child.standardError())
    }
}
