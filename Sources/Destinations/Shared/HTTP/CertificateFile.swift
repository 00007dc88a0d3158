internal import Core
internal import Linux
internal import Synchronization

/// A file of certificates in the form PEM (RFC 7468).
enum CertificateFile {
    /// Blocks.
    ///
    /// - Returns: Why it cannot be used, after its name; `nil` when it can, as far as this shows.
    static func problem(of file: FilePath) -> String? {
        let bytes: [UInt8]
        do throws(SystemError) {
            // Often a symbolic link, which `Files.read` refuses.
            bytes = try Files.read(Files.real(file) ?? file, limit: 16 << 20)
        } catch { return "cannot be read: \(error.reason)" }
        return hasCertificate(bytes) ? nil : "contains no certificate (PEM)"
    }

    /// Whether the first certificate in it is one by its form: base 64 of a sequence (X.690).
    static func hasCertificate(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while let begin = rest.firstRange(of: "-----BEGIN ".utf8) {
            rest = rest[begin.upperBound...]
            guard let label = rest.firstRange(of: "-----".utf8) else { return false }
            let name = String(decoding: rest[..<label.lowerBound], as: UTF8.self)
            rest = rest[label.upperBound...]
            guard let end = rest.firstRange(of: "-----END ".utf8) else { return false }
            defer { rest = rest[end.upperBound...] }
            guard ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"].contains(name) else { continue }
            let text = String(decoding: rest[..<end.lowerBound].filter { $0 > UInt8(ascii: " ") }, as: UTF8.self)
            return Core.bytes(base64: text)?.first == 0x30
        }
        return false
    }
}

/// Remembers which files of certificates can be used, for all requests of one destination: a file is read again only when
/// it has changed.
final class UsableCertificateFiles: Sendable {
    /// As they were when they were read.
    private let known = Mutex<[FilePath: FileStatus]>([:])
    private let judge: @Sendable (FilePath) -> String?

    /// - Parameter judge: Reads a file, as ``CertificateFile/problem(of:)`` does.
    init(judge: @escaping @Sendable (FilePath) -> String? = CertificateFile.problem) { self.judge = judge }

    /// Blocks.
    ///
    /// - Returns: As ``CertificateFile/problem(of:)``.
    func problem(of file: FilePath) -> String? {
        // The status before it is read: a change meanwhile is found the next time.
        let status = Files.real(file).flatMap { try? FileStatus(at: $0) }
        if let status, known.withLock({ $0[file] == status }) { return nil }
        let problem = judge(file)
        known.withLock { $0[file] = problem == nil ? status : nil }
        return problem
    }
}
