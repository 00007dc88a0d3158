import Core
import Destinations
import TestKit
import Testing

/// The address of an upload gives a right to it.
@Suite("Addresses of uploads in messages", .timeLimit(.minutes(Patience.minutes(1))))
struct AddressSecrecyTests {
    private static let id = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
    private static let path = "/files/\(id)"
    private static let query = "sig=PLANTED%2FSIGNATURE&n=7"

    /// Texts that a server may answer with. `HOST` is its origin.
    private static let repetitions = [
        "Cannot PATCH HOST\(path)?\(query)", "Cannot PATCH \(path)?\(query)", "Cannot PATCH \(path)",
        "{\"url\":\"HOST\\/files\\/\(id)?\(query)\"}", "the signature PLANTED%2FSIGNATURE is wrong",
        "the signature PLANTED/SIGNATURE is wrong", "no upload \(id)",
        // As a server writes it in its own way.
        "CANNOT PATCH \(path.uppercased())?\(query.uppercased())", "no upload \(id.uppercased())",
        "Cannot PATCH %2Ffiles%2f\(id)%3Fsig%3DPLANTED%252fSIGNATURE",
        "no upload %30%61%31B2C3D4E5F60718293A4B5C6D7E8F9",
        "Cannot PATCH /files/\(id.prefix(12))\0\(id.dropFirst(12))",
        "no upload \(id.prefix(20))\r\n\(id.dropFirst(20))",
        "{\"url\":\"\\/FILES\\/\(id.uppercased())?sig=planted%2fsignature\"}",
    ]

    /// A server with an upload whose bytes it refuses.
    private func server(_ text: String) throws -> FakeServer {
        try FakeServer { exchange in
            _ = exchange.body()
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(
                    204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Upload-Limit", "min-size=0")])
            case "POST":
                exchange.reply(
                    201,
                    [
                        ("Location", "\(Self.path)?\(Self.query)"), ("Tus-Resumable", "1.0.0"),
                        ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?0"),
                    ])
            case "HEAD":
                exchange.reply(
                    200,
                    [
                        ("Upload-Offset", "0"), ("Upload-Length", "1000"), ("Tus-Resumable", "1.0.0"),
                        ("Upload-Complete", "?0"), ("Upload-Draft-Interop-Version", "8"),
                    ])
            default:
                let host = "http://\(exchange.header("host") ?? "")"
                exchange.reply(422, [("Content-Type", "text/plain")], text.replacing("HOST", with: host))
            }
        }
    }

    @Test(
        "no message shows the address that the server named, whatever of it an error repeats",
        arguments: ["tus", "resumable-http"], repetitions)
    func named(_ type: String, _ text: String) async throws {
        let server = try server(text)
        try await expectHidden(try UploadScenario(server.url + "/files", type: type))
        #expect(server.seen.contains("PATCH \(Self.path)?\(Self.query)"))
    }

    @Test("no message shows the address that a person gave", arguments: repetitions)
    func given(_ text: String) async throws {
        let server = try server(text)
        var scenario = try UploadScenario(server.url + "/files")
        scenario.order.url = .upload("\(server.url)\(Self.path)?\(Self.query)")
        try await expectHidden(scenario)
        #expect(!verbs(server).contains("POST"))
    }

    @Test(
        "of a configured address the path is shown, and no value of its query",
        arguments: [("tus", [:]), ("chunked-form", ["preset": SettingValue.text("resumable")])])
    func configured(_ type: String, _ values: [String: SettingValue]) async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(exchange.method == "POST" ? 422 : 404, [], "Cannot POST \(exchange.target)")
        }
        let error = try await UploadScenario(server.url + "/uploads?key=PLANTEDKEY", values: values, type: type)
            .failedAttempt()
        #expect(error.failure.message.contains("Cannot POST /uploads?key=***"), "\(error)")
    }

    private func expectHidden(_ scenario: UploadScenario) async throws {
        let error = try await scenario.failedAttempt()
        let message = error.failure.message
        #expect(error.failure.http == 422 && message.contains("***"), "\(message)")
        let shown = message.lowercased()
        for secret in ["0a1b2c3d", "c6d7e8f9", "planted", "2fsignature", "/signature"] {
            #expect(!shown.contains(secret), "\(message)")
        }
    }
}
