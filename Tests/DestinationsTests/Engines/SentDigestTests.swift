import Core
import Digests
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// The digest of bytes while they are sent.
@Suite("Digest of sent bytes")
struct SentDigestTests {
    private let temporary = TemporaryFolder()
    private let content = noise(1000, seed: 3)

    private func digest(staged: [UInt8]? = nil) throws -> SentDigest {
        let path = try temporary.write("staged", staged ?? content)
        return SentDigest(
            of: StagedFile(path: path, size: Int64(content.count), sha256: Hasher.digest(.sha256, of: content)))
    }

    private func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, _ retryable: Bool) -> Failure {
        Failure(kind, code: code, message: message, at: WallTime(milliseconds: 0), retryable: retryable)
    }

    private func give(_ bytes: [UInt8], _ range: Range<Int>, to digest: SentDigest) throws {
        try bytes[range].withUnsafeBytes { try digest.admit($0, at: Int64(range.lowerBound)) }
    }

    @Test("a repeated request starts at its first byte, and one that goes back restarts the digest")
    func repeated() async throws {
        let digest = try digest()
        try await digest.begin(at: 0, failure)
        try give(content, 0..<400, to: digest)
        // libcurl sends it again over a fresh connection.
        try give(content, 0..<500, to: digest)
        try await digest.begin(at: 500, failure)
        try give(content, 500..<900, to: digest)
        try give(content, 500..<800, to: digest)
        // The server has fewer bytes than were sent: the bytes before its offset are read.
        try await digest.begin(at: 300, failure)
        try give(content, 300..<1000, to: digest)
        #expect(digest.damage(failure) == nil)
    }

    @Test("a request that starts where the last one started reads nothing")
    func beginsAgain() async throws {
        let digest = try digest()
        try await digest.begin(at: 0, failure)
        try give(content, 0..<400, to: digest)
        try await digest.begin(at: 400, failure)
        try give(content, 400..<700, to: digest)
        try Files.removeIfPresent(temporary.path.appending("staged"))
        try await digest.begin(at: 400, failure)
        try give(content, 400..<1000, to: digest)
        #expect(digest.damage(failure) == nil)
    }

    @Test("bytes sent before this attempt are read, and count")
    func resumed() async throws {
        var rotten = content
        rotten[100] ^= 1
        let digest = try digest(staged: rotten)
        try await digest.begin(at: 600, failure)
        try give(content, 600..<999, to: digest)
        #expect(digest.damage(failure) == nil)
        #expect(throws: SourceProblem.self) { try give(content, 999..<1000, to: digest) }
        #expect(digest.damage(failure)?.failure.code == .stagedChanged)
    }

    @Test("bytes that neither follow nor restart are not sent")
    func outOfOrder() async throws {
        let digest = try digest()
        try await digest.begin(at: 0, failure)
        try give(content, 0..<400, to: digest)
        #expect(throws: SourceProblem.self) { try give(content, 500..<600, to: digest) }
    }

    @Test("an unreadable copy is staged again")
    func unreadable() async throws {
        let digest = try digest()
        try Files.removeIfPresent(temporary.path.appending("staged"))
        let error = await #expect(throws: UploadError.self) { try await digest.begin(at: 10, failure) }
        #expect(error?.remedy == .restage(.unreadable))
    }
}
