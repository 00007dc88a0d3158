import Core
import Credentials
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

@Suite("Web pages instead of answers", .timeLimit(.minutes(Patience.minutes(2))))
struct WebPageTests {
    @Test("a page is distinguished from JSON, text, an empty body, and XML if that is expected")
    func told() {
        func response(_ text: String) -> Response { Response(status: 200, body: Array(text.utf8)) }
        for page in [
            "<html>", "<!DOCTYPE html><html>", " \r\n<HTML>", "\u{FEFF}<html>",
            "<?xml version=\"1.0\"?><html xmlns=\"x\">",
            "<!-- portal -->\n<head>", "<?xml version=\"1.0\"?> <!-- a --> <!DOCTYPE html>", "<script>",
            "<!-- never ends",
        ] {
            #expect(response(page).isWebPage && response(page).isWebPageForXML, "\(page)")
        }
        for text in ["", "{}", "ok", "a<html>", "[\"<html>\"]", " "] {
            #expect(!response(text).isWebPage && !response(text).isWebPageForXML, "\(text)")
        }
        for xml in [
            "<Error><Code>x</Code></Error>", " \n<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult/>",
            "<ListPartsResult xmlns=\"y\">",
        ] {
            #expect(response(xml).isWebPage && !response(xml).isWebPageForXML, "\(xml)")
        }
    }

    static let page = "<html>log in</html>"

    @Test("a bucket's part or removal answered with a page is not done, however good the headers look")
    func bucket() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        scene.emulator.change { $0.faults[.part] = [.answer(200, [("ETag", "\"0123\"")], Self.page)] }
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.failure.code == .webPage && recorder.accepted == 0, "\(error)")
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        let left = try #require(recorder.last)
        scene.emulator.change { $0.faults[.abort] = [.answer(200, [], Self.page)] }
        await #expect(throws: UploadError.self) { try await scene.destination.discard(left) }
        #expect(scene.emulator.uploads.count == 1)
        // For comparison.
        #expect(try await scene.destination.discard(left))
        #expect(scene.emulator.uploads.isEmpty)
    }

    @Test("video data and removal answered with a page are not done")
    func vimeo() async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(200, [("Content-Type", "text/html")], Self.page)
        }
        let clocks = SystemClocks()
        let client = AuthorizedClient(
            transport: Transport(), credentials: CredentialProvider([], reader: SecretReader()), origin: server.url,
            clocks: clocks, name: "archive")
        let api = VimeoAPI(client, base: server.url, limits: Limits())
        for method in ["POST", "PATCH", "DELETE"] {
            let error = await #expect(throws: UploadError.self) {
                try await api.call(method, "/videos/1", nil, "it", .open)
            }
            #expect(error?.failure.code == .webPage)
        }
        // A caller that sends a query notices the missing JSON.
        #expect(try await api.call("GET", "/videos/1", nil, "it", .open).json == nil)
    }
}
