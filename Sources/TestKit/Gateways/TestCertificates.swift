package import Core
internal import Linux

/// Certificates of an authority of the test's own, for 127.0.0.1 and `localhost`, made with openssl(1).
package struct TestCertificates: Sendable {
    /// The authority's certificate.
    package let authority: FilePath
    package let server: Pair
    package let client: Pair
    private let folder: FilePath

    package struct Pair: Sendable {
        package let certificate: FilePath
        package let key: FilePath
    }

    package struct FailedError: Error { package let words: String }

    /// - Parameter folder: Made if it is missing.
    package init(in folder: FilePath) async throws {
        self.folder = folder
        try Files.makeFolders(folder)
        let authority = folder.appending("authority.pem")
        self.authority = authority
        let key = folder.appending("authority.key")
        try await Self.run(
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj",
                "/CN=Authority of a test", "-keyout", key.display, "-out", authority.display,
            ], in: folder)
        func pair(_ name: String, _ extensions: String) async throws -> Pair {
            let pair = Pair(
                certificate: folder.appending(FilePath("\(name).pem")), key: folder.appending(FilePath("\(name).key")))
            try await Self.run(
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=\(name)", "-addext", extensions, "-CA", authority.display, "-CAkey", key.display,
                    "-keyout", pair.key.display, "-out", pair.certificate.display,
                ], in: folder)
            return pair
        }
        server = try await pair("nas", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:nas.example")
        client = try await pair("camera", "extendedKeyUsage=clientAuth")
    }

    /// The digest of the server's public key, as curl(1) takes it for `--pinnedpubkey`.
    package func pin() async throws -> String {
        let der = folder.appending("public.der")
        try await Self.run(
            ["pkey", "-in", server.key.display, "-pubout", "-outform", "der", "-out", der.display], in: folder)
        let digest = folder.appending("public.digest")
        try await Self.run(["dgst", "-sha256", "-binary", "-out", digest.display, der.display], in: folder)
        return "sha256//" + base64(try Files.read(digest))
    }

    /// The client's key, encrypted with a password.
    package func encryptedClientKey(_ password: String) async throws -> FilePath {
        let encrypted = folder.appending("encrypted.key")
        try await Self.run(
            [
                "pkey", "-in", client.key.display, "-aes256", "-passout", "pass:\(password)", "-out", encrypted.display,
            ], in: folder)
        return encrypted
    }

    /// A certificate of the client's that has expired, with its key.
    package func expiredClient() async throws -> Pair {
        let (request, expired) = (folder.appending("expired.csr"), folder.appending("expired.pem"))
        try await Self.run(
            ["req", "-new", "-key", client.key.display, "-subj", "/CN=camera", "-out", request.display], in: folder)
        try await Self.run(
            [
                "x509", "-req", "-in", request.display, "-CA", authority.display, "-CAkey",
                folder.appending("authority.key").display, "-set_serial", "7", "-days", "-1", "-out", expired.display,
            ], in: folder)
        return Pair(certificate: expired, key: client.key)
    }

    private static func run(_ words: [String], in folder: FilePath) async throws {
        let child = try Child(
            "/usr/bin/openssl", words, output: folder.appending("out"), errors: folder.appending("err"))
        guard try await child.end(within: .seconds(60)) == .status(0) else {
            throw FailedError(words: try child.standardError())
        }
    }
}
