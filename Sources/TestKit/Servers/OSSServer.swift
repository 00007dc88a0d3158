package import Core
internal import Glibc
internal import Linux

/// `Tests/Fixtures/oss_emulator.py`: an emulator of Alibaba Cloud OSS, which recomputes each signature with the
/// vendor's own packages.
package final class OSSServer: Sendable {
    package static let id = "LTAI5tTestLongLivedKey"
    package static let secretKey = "LongLivedSecret0123456789abcdef"
    package static let region = "cn-shanghai"
    package static let bucket = "cameras"

    /// An object in the bucket, by its bytes.
    package struct Object: Hashable, Sendable {
        package var size: Int64
        /// Hexadecimal.
        package var sha256: String
        /// Path of the file that holds it.
        package var path: FilePath
    }

    package let port: Int
    package var url: String { "http://127.0.0.1:\(port)" }
    package let folder = TemporaryFolder()
    private let fork: PythonForks.Fork

    private static let scripts = Repository.root.appending("Tests/Fixtures")

    package init() async throws {
        let interpreter = try await PythonForks.of(
            "oss",
            importing: [
                "oss_emulator", "oss2.auth", "oss2.utils", "alibabacloud_tea_openapi.utils",
                "aliyunsdkcore.auth.composer",
                "darabonba.request",
            ])
        let port = try Loopback.freePort()
        self.port = port
        let script = Self.scripts.appending("oss_emulator.py")
        fork = try await interpreter.run(
            script, ["--port", "\(port)", "--state", folder.path.appending("state").display], at: port,
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
    }

    /// Runs the emulator's own tests: each rule and fault, the vectors, and the vendor's clients.
    ///
    /// - Returns: How it ended, and its output.
    package static func runOwnTests() async throws -> (ending: Child.Ending, words: String) {
        try await blocking {
            let folder = TemporaryFolder()
            let child = try Child(
                try Tools.python("oss").appending("python"),
                ["-B", scripts.appending("test_oss_emulator.py").display],
                output: folder.path.appending("out"), errors: folder.path.appending("err"))
            let ending = child.wait()
            return (ending, try child.standardError())
        }
    }

    package func stop() { fork.end() }

    /// Controls or queries it; the script defines the words.
    ///
    /// - Parameter wish: JSON; `nil` for a query.
    @discardableResult
    package func control(_ name: String, _ wish: String? = nil) async throws -> String {
        do { return try await send(name, wish) } catch let error as SystemError {
            let errors = try Files.read(folder.path.appending("err"), limit: 1 << 20).suffix(2000)
            throw Wire.Broken(
                description:
                    "\(name): \(error); the emulator \(Loopback.answers(port) ? "answers" : "is gone"), and wrote: "
                    + String(decoding: errors, as: UTF8.self))
        }
    }

    private func send(_ name: String, _ wish: String?) async throws -> String {
        let wire = try Wire(port: port)
        let body = wish ?? ""
        try await wire.send(
            "\(wish == nil ? "GET" : "POST") /_control/\(name) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        let reply = try await wire.reply()
        guard reply.status == 200 else { throw Wire.Broken(description: "\(name): \(reply.status) \(reply.text)") }
        return reply.text
    }

    /// The objects in the bucket, by key.
    package func objects() async throws -> [String: Object] {
        Dictionary(
            try await control("sums").split(separator: "\n").compactMap { line in
                let fields = line.split(separator: "\t", maxSplits: 3).map(String.init)
                guard fields.count == 4, let size = Int64(fields[1]) else { return nil }
                return (key(fields[3]), Object(size: size, sha256: fields[0], path: FilePath(fields[2])))
            }
        ) { $1 }
    }

    /// The key without the bucket, if that is the one of most tests.
    private func key(_ coded: String) -> String {
        let whole = PercentCoding.text(decoding: coded) ?? coded
        return whole.hasPrefix("\(Self.bucket)/") ? String(whole.dropFirst(Self.bucket.count + 1)) : whole
    }

    /// The keys of incomplete uploads.
    package func unfinished() async throws -> [String] {
        try await control("unfinished").split(separator: "\n").map { key(String($0)) }
    }

    /// The operations that were requested, by their names in the manual.
    package func operations() async throws -> [String] {
        try await control("operations").split(separator: "\n").map(String.init)
    }
}
