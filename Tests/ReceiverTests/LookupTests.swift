import Core
import Glibc
import Linux
import TestKit
import Testing

/// The receiver's own extension: the query whether it has a content under a name.
@Suite("Lookup of files", .timeLimit(.minutes(Patience.minutes(1))))
struct LookupTests {
    private static let content = noise(5000)

    private func ask(
        _ inbox: ReceiverFixture, _ name: String, _ content: [UInt8], _ headers: [String: String] = [:],
        length: Int? = nil
    ) async throws -> (status: Int, mark: String?) {
        let metadata = ReceiverFixture.metadata(["filename": Array(name.utf8), "sha256": Array(sha256(content).utf8)])
        let all = ["Upload-Length": "\(length ?? content.count)", "Upload-Metadata": metadata].merging(headers) { $1 }
        let reply = try await inbox.ask("HEAD", "/files/", all)
        return (reply.status, reply.headers["sluice-lookup"])
    }

    @Test("lookup is announced")
    func announced() async throws {
        try await ReceiverFixture.open { inbox in
            let reply = try await inbox.ask("OPTIONS", "/files/")
            #expect(reply.headers["sluice-lookup"] == "1")
        }
    }

    @Test("a content is found under its name, and under the alternative name it got")
    func held() async throws {
        try await ReceiverFixture.open { inbox in
            try await inbox.upload(noise(40, seed: 9), ["filename": "clips/a.mp4"])
            try await inbox.upload(Self.content, ["filename": "clips/a.mp4"])
            #expect(try await ask(inbox, "clips/a.mp4", Self.content) == (200, "held"))
            #expect(try await ask(inbox, "clips/b.mp4", Self.content) == (404, "absent"))
            #expect(try await ask(inbox, "other/a.mp4", Self.content) == (404, "absent"))
            #expect(try await ask(inbox, "clips/a.mp4", noise(5000, seed: 3)) == (404, "absent"))
            #expect(try await ask(inbox, "clips/a.mp4", Self.content, length: 4999) == (404, "absent"))
        }
    }

    @Test("a lookup trusts the content on disk, not the record")
    func disk() async throws {
        try await ReceiverFixture.open { inbox in
            try await inbox.upload(Self.content, ["filename": "a", "mtime": "1000000000"])
            let path = inbox.folder.appending("a")
            // The same size with another content; a check of only the record would say "held".
            try Files.remove(path)
            try Files.replace(path, with: noise(5000, seed: 4))
            #expect(try await ask(inbox, "a", Self.content) == (404, "absent"))
            try Files.remove(path)
            #expect(try await ask(inbox, "a", Self.content) == (404, "absent"))
            // A file that another program put there counts, once it is read.
            try Files.replace(path, with: Self.content)
            #expect(try await ask(inbox, "a", Self.content) == (200, "held"))
        }
    }

    @Test("lookup leads nowhere outside the folder, and needs the token")
    func hostile() async throws {
        let outside = TemporaryFolder()
        try outside.write("secret", Self.content)
        try await ReceiverFixture.open(token: "abc") { inbox in
            let pass = ["Authorization": "Bearer abc"]
            #expect(try await ask(inbox, "a", Self.content) == (401, nil))
            let climb = "../../../../../../../.." + outside.path.appending("secret").display
            #expect(try await ask(inbox, climb, Self.content, pass).status == 400)
            #expect(try await ask(inbox, outside.path.appending("secret").display, Self.content, pass).status == 400)
            #expect(try await ask(inbox, ".sluice-receive/lock", Self.content, pass).status == 400)
            try #require(symlink(outside.path.display, inbox.folder.appending("way").display) == 0)
            #expect(try await ask(inbox, "way/secret", Self.content, pass) == (404, "absent"))
            let secret = outside.path.appending("secret").display
            try #require(symlink(secret, inbox.folder.appending("direct").display) == 0)
            #expect(try await ask(inbox, "direct", Self.content, pass) == (404, "absent"))
        }
    }

    @Test("a lookup without digest or length is refused")
    func malformed() async throws {
        try await ReceiverFixture.open { inbox in
            let name = ReceiverFixture.metadata(["filename": [0x61]])
            for headers in [["Upload-Length": "5"], ["Upload-Length": "5", "Upload-Metadata": name]] {
                let reply = try await inbox.ask("HEAD", "/files/", headers)
                #expect(reply.status == 400)
            }
        }
    }

    @Test("a new upload of existing content finishes without a byte, and its removal keeps the file")
    func creation() async throws {
        try await ReceiverFixture.open { inbox in
            try await inbox.upload(Self.content, ["filename": "a"])
            let reply = try await inbox.create(5000, ["filename": "a", "sha256": sha256(Self.content)])
            #expect(reply.status == 201)
            #expect(reply.headers["upload-offset"] == "5000")
            let location = try #require(reply.headers["location"])
            #expect(try await inbox.offset(location) == 5000)
            #expect(try await inbox.ask("DELETE", location).status == 204)
            #expect(try inbox.delivered() == ["a"])
            #expect(try inbox.content("a") == Self.content)
            // Another content with that name begins at 0.
            let other = try await inbox.create(5000, ["filename": "a", "sha256": sha256(noise(5000, seed: 4))])
            #expect(other.headers["upload-offset"] == nil)
        }
    }

    @Test("a repeated creation by a sender without state reports the upload's progress")
    func repeated() async throws {
        try await ReceiverFixture.open { inbox in
            let words = ["filename": "a", "sluiceId": "01.1", "sha256": sha256(Self.content)]
            let location = try await inbox.made(5000, words)
            _ = try await inbox.patch(location, at: 0, Array(Self.content.prefix(2000)))
            let reply = try await inbox.create(5000, words)
            #expect(reply.headers["location"] == location)
            #expect(reply.headers["upload-offset"] == "2000")
        }
    }
}
