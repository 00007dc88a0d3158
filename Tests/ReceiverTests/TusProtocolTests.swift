import Core
import Linux
import TestKit
import Testing

/// tus 1.0.0, request by request.
@Suite("TusService", .timeLimit(.minutes(Patience.minutes(1))))
struct TusProtocolTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let method: String
        let target: String
        let headers: [String: String]
        let status: Int
        var testDescription: String { "\(method) \(target) \(headers) → \(status)" }
    }

    @Test(
        "a file with any time is accepted, however absurd",
        arguments: ["-9223372036854775808", "9223372036854775807", "-1", "99999999999999999999", "soon"])
    func absurdTime(_ time: String) async throws {
        try await ReceiverFixture.open { inbox in
            let metadata = ReceiverFixture.metadata(["filename": Array("a".utf8), "mtime": Array(time.utf8)])
            let made = try await inbox.ask("POST", "/files/", ["Upload-Length": "1", "Upload-Metadata": metadata])
            let place = try #require(made.headers["location"])
            let headers = ["Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"]
            #expect(try await inbox.ask("PATCH", place, headers, [1]).status == 204)
            #expect(try FileStatus(at: inbox.folder.appending("a")).size == 1)
        }
    }

    @Test(
        "responses follow the protocol",
        arguments: [
            Case(method: "OPTIONS", target: "/files/", headers: ["Tus-Resumable": ""], status: 204),
            Case(method: "GET", target: "/files/", headers: [:], status: 405),
            Case(method: "GET", target: "/", headers: [:], status: 404),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "5"], status: 201),
            Case(method: "POST", target: "/files", headers: ["Upload-Length": "5"], status: 201),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "5", "Tus-Resumable": ""], status: 412),
            Case(
                method: "POST", target: "/files/", headers: ["Upload-Length": "5", "Tus-Resumable": "0.2"], status: 412),
            Case(method: "POST", target: "/files/", headers: [:], status: 400),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "-5"], status: 400),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "+5"], status: 400),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "5x"], status: 400),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "9223372036854775808"], status: 400),
            Case(method: "POST", target: "/files/", headers: ["Upload-Length": "2000001"], status: 413),
            Case(method: "POST", target: "/files/", headers: ["Upload-Defer-Length": "1"], status: 400),
            Case(
                method: "POST", target: "/files/", headers: ["Upload-Length": "5", "Upload-Metadata": "a !!!"],
                status: 400),
            Case(
                method: "POST", target: "/files/", headers: ["Upload-Length": "5", "Upload-Metadata": "a YQ==,a YQ=="],
                status: 400),
            Case(
                method: "POST", target: "/files/", headers: ["Upload-Length": "5", "Upload-Concat": "partial"],
                status: 400),
            Case(method: "HEAD", target: "/files/00000000000000000000000000000000", headers: [:], status: 404),
            Case(method: "HEAD", target: "/files/../../etc/passwd", headers: [:], status: 404),
            Case(method: "DELETE", target: "/files/00000000000000000000000000000000", headers: [:], status: 404),
            Case(
                method: "PATCH", target: "/files/00000000000000000000000000000000",
                headers: ["Upload-Offset": "0", "Content-Type": ReceiverFixture.offsetType], status: 404),
        ])
    func table(_ row: Case) async throws {
        try await ReceiverFixture.open(maxSize: 2_000_000) { inbox in
            let reply = try await inbox.ask(row.method, row.target, row.headers)
            #expect(reply.status == row.status)
            #expect(reply.headers["tus-resumable"] == "1.0.0")
            #expect(row.status != 412 || reply.headers["tus-version"] == "1.0.0")
        }
    }

    @Test(
        "a PATCH must state its offset and type, and otherwise changes nothing",
        arguments: [
            (["Upload-Offset": "5", "Content-Type": "text/plain"], 3, 415),
            (["Content-Type": ReceiverFixture.offsetType], 3, 400),
            (["Upload-Offset": "x", "Content-Type": ReceiverFixture.offsetType], 3, 400),
            (["Upload-Offset": "4", "Content-Type": ReceiverFixture.offsetType], 3, 409),
            (["Upload-Offset": "11", "Content-Type": ReceiverFixture.offsetType], 3, 409),
            (["Upload-Offset": "5", "Content-Type": ReceiverFixture.offsetType], 6, 413),
            (["Upload-Offset": "5", "Content-Type": ReceiverFixture.offsetType], 0, 204),
        ])
    func patches(_ headers: [String: String], _ count: Int, _ status: Int) async throws {
        try await ReceiverFixture.open { inbox in
            let location = try await inbox.made(10, ["filename": "a"])
            _ = try await inbox.patch(location, at: 0, noise(5))
            let reply = try await inbox.ask("PATCH", location, headers, noise(count))
            #expect(reply.status == status)
            // A conflict contains the upload's offset.
            if status == 409 { #expect(reply.headers["upload-offset"] == "5") }
            #expect(try await inbox.offset(location) == 5)
        }
    }

    @Test("a chunked body beyond the missing bytes is refused, and nothing beyond the end stored")
    func tooLong() async throws {
        try await ReceiverFixture.open { inbox in
            let location = try await inbox.made(10, ["filename": "a"])
            let wire = try Wire(port: inbox.port)
            try await wire.send(
                ReceiverFixture.head(
                    "PATCH", location,
                    ["Upload-Offset": "0", "Content-Type": ReceiverFixture.offsetType, "Transfer-Encoding": "chunked"]))
            try await wire.send("6\r\nabcdef\r\n6\r\nghijkl\r\n0\r\n\r\n")
            #expect(try await wire.reply().status == 413)
            #expect(try await inbox.offset(location) ?? 99 <= 10)
            #expect(try inbox.delivered() == [])
        }
    }

    @Test("HEAD returns offset, length and metadata, and forbids caching")
    func head() async throws {
        try await ReceiverFixture.open { inbox in
            let location = try await inbox.made(10, ["filename": "a"])
            let reply = try await inbox.ask("HEAD", location)
            #expect(reply.status == 200)
            #expect(reply.headers["upload-offset"] == "0")
            #expect(reply.headers["upload-length"] == "10")
            #expect(reply.headers["upload-metadata"] == "filename YQ==")
            #expect(reply.headers["cache-control"] == "no-store")
        }
    }

    @Test("OPTIONS announces the supported extensions")
    func options() async throws {
        try await ReceiverFixture.open(maxSize: 5) { inbox in
            let reply = try await inbox.ask("OPTIONS", "/files/", ["Tus-Resumable": ""])
            #expect(reply.headers["tus-version"] == "1.0.0")
            #expect(reply.headers["tus-extension"] == "creation,creation-with-upload,termination")
            #expect(reply.headers["sluice-idempotent-creation"] == "1")
            #expect(reply.headers["tus-max-size"] == "5")
            #expect(reply.headers["sluice-space-free"].flatMap { Int64($0) } ?? -1 >= 0)
        }
    }

    @Test("POST replaces methods that a network blocks")
    func override() async throws {
        try await ReceiverFixture.open { inbox in
            let location = try await inbox.made(3, ["filename": "a"])
            let headers = [
                "X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0", "Content-Type": ReceiverFixture.offsetType,
            ]
            #expect(try await inbox.ask("POST", location, headers, [1, 2, 3]).status == 204)
            #expect(try inbox.content("a") == [1, 2, 3])
            #expect(try await inbox.ask("POST", location, ["X-HTTP-Method-Override": "DELETE"]).status == 204)
        }
    }

    @Test(
        "without the right token every request is refused",
        arguments: [
            ([:], 401), (["Authorization": "Bearer "], 401), (["Authorization": "Bearer s3cre"], 401),
            (["Authorization": "Basic s3cret"], 401), (["Authorization": "Bearer s3cret"], 201),
            (["Authorization": "bearer s3cret"], 201),
        ])
    func token(_ headers: [String: String], _ status: Int) async throws {
        try await ReceiverFixture.open(token: "s3cret") { inbox in
            let reply = try await inbox.ask("POST", "/files/", headers.merging(["Upload-Length": "5"]) { $1 })
            #expect(reply.status == status)
            #expect(status != 401 || reply.headers["www-authenticate"] == "Bearer realm=\"sluice\"")
            #expect(try inbox.unfinished() == (status == 201 ? 1 : 0))
        }
    }
}
