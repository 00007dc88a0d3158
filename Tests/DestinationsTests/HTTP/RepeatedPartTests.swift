import Core
import TestKit
import Testing
import Transport

@testable import Destinations

/// A server that repeats a part of what it was sent.
@Suite("Parts of secrets in messages", .timeLimit(.minutes(Patience.minutes(1))))
struct RepeatedPartTests {
    struct Sent: Sendable, CustomTestStringConvertible {
        let type: String
        let values: [String: SettingValue]
        let part: String
        var testDescription: String { "\(type), \(part)" }
    }

    private static let login = "Basic " + base64(Array("camera-user:PASSWORD-of-it".utf8))

    private static let headers: [(type: String, key: String, values: [String: SecretSource], part: String)] = [
        ("chunked-form", "headers", ["Authorization": .literal("Bearer TOKENSECRET77")], "TOKENSECRET77"),
        ("chunked-form", "headers", ["Cookie": .literal("a=1; sid=COOKIESECRET55")], "COOKIESECRET55"),
        ("chunked-form", "send.headers", ["X-Site": .literal("id=7,key=SITESECRET33")], "SITESECRET33"),
        ("chunked-form", "send.fields", ["api_key": .literal("FIELDSECRET44")], "FIELDSECRET44"),
        ("chunked-form", "http.headers", ["Cookie": .literal("a=1; NAMELESSCOOKIE9")], "NAMELESSCOOKIE9"),
        ("tus", "http.headers", ["Cookie": .literal("a=1; sid=COOKIESECRET55")], "COOKIESECRET55"),
        ("tus", "http.headers", ["X-Login": .literal("user=me&pass=QUERYSECRET22")], "QUERYSECRET22"),
        ("tus", "http.headers", ["Authorization": .literal("Token token=\"QUOTEDSECRET11\"")], "QUOTEDSECRET11"),
        ("resumable-http", "http.headers", ["Authorization": .literal(login)], "PASSWORD-of-it"),
        ("resumable-http", "http.headers", ["Authorization": .literal(login)], "camera-user"),
    ]

    private static let sent = headers.map { one in
        var values: [String: SettingValue] = one.type == "chunked-form" ? ["preset": .text("dropzone")] : [:]
        values[one.key] = .map(one.values)
        return Sent(type: one.type, values: values, part: one.part)
    }

    @Test("a server that repeats a part of a header alone does not have it shown", arguments: sent)
    func hidden(_ sent: Sent) async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(
                403, [("Content-Type", "text/plain"), ("Server", sent.part)], "the token \(sent.part) is not valid")
        }
        let scenario = try UploadScenario(server.url + "/files", values: sent.values, type: sent.type)
        let message = try await scenario.failedAttempt().failure.message
        #expect(message.contains("the token *** is not valid") && !message.contains(sent.part), "\(message)")
        let check = await scenario.destination.check()
        #expect(!check.detail.contains(sent.part), "\(check.detail)")
    }

    @Test("a proxy that repeats the user or the password that it was sent does not have them shown")
    func proxy() async throws {
        let proxy = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(403, [("Content-Type", "text/plain")], "camera-user may not, PASSWORD-of-it")
        }
        let scenario = try UploadScenario(
            "http://192.0.2.7/files",
            values: [
                "http.proxy": .text("http://127.0.0.1:\(proxy.port)"), "http.proxy_user": .text("camera-user"),
                "http.proxy_password": .secret(.literal("PASSWORD-of-it")),
            ])
        let message = try await scenario.failedAttempt().failure.message
        #expect(message.contains("*** may not, ***"), "\(message)")
    }

    @Test(
        "the parts of a header's value are what follows its scheme, the values of its pairs, and a login",
        arguments: [
            ("Bearer abc", ["Bearer abc", "abc"]), ("abc", ["abc"]), ("", [""]),
            ("a=1; sid=two", ["a=1; sid=two", "sid=two", "1", "two"]), ("k=%2Fv", ["k=%2Fv", "%2Fv", "/v"]),
            ("Token token=\"x\"", ["Token token=\"x\"", "token=\"x\"", "\"x\"", "x"]),
            ("Basic " + base64(Array("me:p:w".utf8)), ["Basic bWU6cDp3", "bWU6cDp3", "me:p:w", "me", "p:w"]),
            ("Basic no-base-64", ["Basic no-base-64", "no-base-64"]),
        ])
    func parts(_ value: String, _ parts: [String]) { #expect(SecretParts.of(value) == parts) }

    @Test("short parts stay readable, and so do names")
    func short() {
        let known = SentCredentials()
        known.remember(header: "Cookie", "language=german; theme=dark; sid=0123456789")
        #expect(known.values.contains("0123456789"))
        #expect(!known.values.contains("german") && !known.values.contains { $0 == "language" || $0 == "dark" })
    }

    @Test("a value with many parts pushes out no other, and each is remembered as long as it is in use")
    func many() {
        let known = SentCredentials()
        let cookie = (0..<400).map { "c\($0)=VALUE-OF-COOKIE-\($0)" }.joined(separator: "; ")
        for number in 0..<300 {
            known.remember(header: "Authorization", "Bearer TOKEN-IN-USE")
            known.remember(header: "Cookie", cookie)
            known.remember("A-TOKEN-OF-THE-HOUR-\(number)")
        }
        let values = Set(known.values)
        #expect(values.isSuperset(of: ["TOKEN-IN-USE", "VALUE-OF-COOKIE-0", "VALUE-OF-COOKIE-399"]))
        #expect(values.contains("A-TOKEN-OF-THE-HOUR-299") && !values.contains("A-TOKEN-OF-THE-HOUR-0"))
    }
}
