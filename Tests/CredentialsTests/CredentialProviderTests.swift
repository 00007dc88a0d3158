import Core
import Credentials
import Glibc
import TestKit
import Testing

@Suite("CredentialProvider")
struct CredentialProviderTests {
    @Test("a credential is read once, and again only if that very value was refused")
    func caches() async throws {
        let folder = TemporaryFolder()
        let path = try folder.write("token", Array("one".utf8))
        let provider = CredentialProvider(
            [.init("Authorization", prefix: "Bearer ", .file(path)), .init("X-Key", .literal("k"))],
            reader: SecretReader())
        let first = try await provider.current()
        #expect(first.headers.map(\.0) == ["Authorization", "X-Key"])
        #expect(first.headers.map(\.1) == ["Bearer one", "k"])
        try folder.write("token", Array("two".utf8))
        #expect(try await provider.current().headers.first?.1 == "Bearer one")
        await provider.refused(first.reading)
        let second = try await provider.current()
        #expect(second.headers.first?.1 == "Bearer two")
        // A slower upload reports the old refusal only now; the new secret stays.
        try folder.write("token", Array("three".utf8))
        await provider.refused(first.reading)
        #expect(try await provider.current().headers.first?.1 == "Bearer two")
    }
}
