import Core
import Linux
import TestKit
import Testing
import WebServer

@Suite("FinalName", .timeLimit(.minutes(Patience.minutes(1))))
struct FinalNameTests {
    static let long = String(repeating: "ä", count: 140)

    @Test(
        "a name leads below the folder or is refused",
        arguments: [
            ("a.mp4", "a.mp4"), ("a/b/c.mp4", "a/b/c.mp4"), ("ä ö.mp4", "ä ö.mp4"), ("a\nb", "a\nb"),
            ("..a", "..a"), (".hidden", ".hidden"), ("a\\b", "a\\b"), ("/etc/passwd", nil), ("../a", nil),
            ("a/../../b", nil), ("a/..", nil), ("..", nil), (".", nil), ("a//b", nil), ("a/./b", nil), ("a/", nil),
            ("a\0b", nil), (".sluice-receive/x", nil), (".sluice-receive", nil), (".sluice-receive2", nil),
            ("\(long).mp4", "\(String(repeating: "ä", count: 125)).mp4"),
        ])
    func table(_ name: String, _ expected: String?) async throws {
        try await ReceiverFixture.open { inbox in
            let reply = try await inbox.create(0, ["filename": name])
            #expect(reply.status == (expected == nil ? 400 : 201))
            #expect(try inbox.delivered() == (expected.map { [FilePath($0)] } ?? []))
            #expect(try Files.names(in: inbox.temporary.path) == ["in"])
        }
    }

    @Test("sluicePath may contain any bytes, and precedes the others")
    func bytes() async throws {
        try await ReceiverFixture.open { inbox in
            let name = FilePath(bytes: Array(UInt8(1)...UInt8.max).filter { $0 != UInt8(ascii: "/") }.prefix(250))
            let path = FilePath(bytes: [0xFF, 0xFE]).appending(name)
            let coded = PercentCoding.encode(path.bytes, keeping: "/")
            try await inbox.upload([], ["sluicePath": coded, "relativePath": "no", "filename": "no"])
            #expect(try inbox.delivered() == [path])
            #expect(try await inbox.create(0, ["sluicePath": "%2e%2e/x"]).status == 400)
            #expect(try await inbox.create(0, ["sluicePath": "%2fx"]).status == 400)
            #expect(try await inbox.create(0, ["sluicePath": "%zz"]).status == 400)
        }
    }

    @Test("relativePath precedes filename, and without a name there is still a place")
    func order() async throws {
        try await ReceiverFixture.open { inbox in
            try await inbox.upload([], ["relativePath": "x/y", "filename": "z"])
            try await inbox.upload([1], [:])
            #expect(try inbox.delivered() == ["unnamed", "x/y"])
        }
    }

    @Test("a number fits into a name of maximal length")
    func longest() async throws {
        try await ReceiverFixture.open { inbox in
            let name = String(repeating: "n", count: 251) + ".mp4"
            try await inbox.upload([1], ["filename": name])
            try await inbox.upload([2], ["filename": name])
            let second = FilePath(String(repeating: "n", count: 247) + " (2).mp4")
            #expect(try inbox.content(second) == [2])
        }
    }
}
