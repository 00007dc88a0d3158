import Core
import Linux
import TestKit
import Testing

/// The signer from the manual, word for word, for a bucket at a third-party server.
final class PageSigner: Sendable {
    static let token = "the-token-of-the-signer"
    /// For `presign.command`.
    let command: [String]
    let url: String
    private let child: Child
    private let temporary = TemporaryFolder()

    /// - Parameter secretKey: The key with which it signs.
    init(for server: String, secretKey: String = S3Server.secretKey, prefix: String = "") async throws {
        let python = try await blocking { try Tools.python("moto") }.appending("python")
        let page = Repository.root.appending("docs/destinations/s3.md")
        let text = String(decoding: try Files.read(page), as: UTF8.self)
        let blocks = text.split(separator: "```python\n").dropFirst()
        let block = try #require(blocks.first.flatMap { $0.split(separator: "```").first })
        let script = try temporary.write("signer.py", Array(block.utf8))
        let variables = [
            "SIGNER_BUCKET": "bucket", "SIGNER_ENDPOINT": server, "SIGNER_PREFIX": prefix, "SIGNER_TOKEN": Self.token,
            "AWS_ACCESS_KEY_ID": S3Server.id, "AWS_SECRET_ACCESS_KEY": secretKey,
        ]
        let words = variables.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        command = ["/usr/bin/env"] + words + [python.display, script.display]
        let port = try Loopback.freePort()
        url = "http://127.0.0.1:\(port)/sign"
        child = try Child(
            python, [script.display, "\(port)"], environment: variables, output: temporary.path.appending("out"),
            errors: temporary.path.appending("err"))
        let child = child
        try await eventually("the signer listens", within: .seconds(30), every: .milliseconds(50)) {
            try child.requireRunning()
            return Loopback.answers(port)
        }
    }

    func stop() { _ = child.end(with: 9) }
    deinit { stop() }
}
