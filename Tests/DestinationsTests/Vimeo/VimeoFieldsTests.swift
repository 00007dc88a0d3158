import Config
import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// The fields of a video.
@Suite("vimeo: attributes of a video", .timeLimit(.minutes(Patience.minutes(2))))
struct VimeoFieldsTests {
    private func settings(_ video: String) throws -> [String: SettingValue] {
        let text = """
            version: 1
            folders: [{name: door, path: /srv/camera, upload_to: [a]}]
            destinations:
              a: {type: vimeo, token: {env: T}, video: {\(video)}}
            """
        let folder = TemporaryFolder()
        let file = try folder.write("a.yaml", Array(text.utf8))
        let loaded = try Settings.load(file, types: DestinationTable.builtIn.map(\.type), disk: .unchecked) { _ in "x" }
        let first = try #require(loaded.settings.destinations.first)
        return first.values
    }

    /// The fields that the emulator received for the one video, equal in each flow.
    private func said(_ video: String, metadata: [String: String] = [:]) async throws -> [String: String] {
        var all: [[String: String]] = []
        for flow in VimeoFlow.allCases {
            let more = try settings(video).filter { $0.key.hasPrefix("video.") }
            let end = try VimeoEnd(flow, more)
            let staged = try StagedUpload(10)
            var order = staged.order
            // As the daemon fills templates that are the same for all files.
            order.metadata = more.compactMapValues {
                if case .template(let template) = $0 { template.constant } else { nil }
            }
            .merging(metadata) { own, _ in own }
            _ = try await end.destination.upload(order, reporter: RecordingReporter())
            all.append(end.server.videos.first?.fields ?? [:])
        }
        #expect(Set(all).count == 1, "\(all)")
        return all.first ?? [:]
    }

    @Test("attributes are sent with the creation or after it; the destination's before the folder's, and a name always")
    func fields() async throws {
        #expect(try await said("license: cc0") == ["name": "clip", "license": "cc0"])
        let metadata = ["title": "  From the folder ", "description": "   ", "other": "x"]
        #expect(try await said("license: cc0", metadata: metadata)["name"] == "From the folder")
        #expect(try await said("name: Own, description: words", metadata: metadata)["name"] == "Own")
        let all = try await said("privacy: {view: users, embed: private}, users: [/users/1, /users/2]")
        #expect(all == ["name": "clip", "view": "users", "embed": "private", "users": "/users/1,/users/2"])
        let secret = try await said("privacy: {view: password}, password: {literal: sesame}")
        #expect(secret["password"] == "sesame")
    }

    @Test(
        "attributes are checked when read: words, lengths, and combinations",
        arguments: [
            ("privacy: {view: Nobody}", "did you mean `nobody`"), ("privacy: {embed: all}", "takes one of"),
            ("privacy: {view: password}", "`video.password` is missing"),
            ("privacy: {view: users}", "`video.users` is missing"),
            ("password: {literal: x}", "has no effect"), ("users: [123]", "takes addresses like"),
            ("name: \"\(String(repeating: "n", count: 129))\"", "has 129 characters"),
            ("folder: projects", "takes an address"),
        ])
    func judged(_ video: String, _ words: String) throws {
        let error = #expect(throws: ConfigErrors.self) { try settings(video) }
        #expect(error?.description.contains(words) == true, "\(String(describing: error))")
        #expect(error?.description.contains("destinations.a.video.") == true)
    }

    @Test("all mistakes are reported at once")
    func all() {
        let error = #expect(throws: ConfigErrors.self) {
            try settings("privacy: {view: foo, embed: foo}, locale: \"12345678901\", users: [a], folder: abc")
        }
        for key in ["privacy.view", "privacy.embed", "locale", "users", "folder"] {
            #expect(error?.description.contains("destinations.a.video.\(key):") == true, "\(key)")
        }
    }

    @Test("attributes that a template made invalid fail this file, and too long ones are cut, with a warning")
    func made() async throws {
        let end = try VimeoEnd()
        var order = try StagedUpload(10).order
        let staged = try StagedUpload(10)
        order = staged.order
        order.metadata = ["video.privacy.view": "front door"]
        let error = await #expect(throws: UploadError.self) {
            try await end.destination.upload(order, reporter: RecordingReporter())
        }
        #expect(error?.remedy == .failUpload)
        #expect(error?.failure.message.contains("front door") == true)
        order.metadata = ["video.name": String(repeating: "é", count: 200)]
        let object = try await end.destination.upload(order, reporter: RecordingReporter())
        #expect(object.warnings.count == 1)
        #expect(end.server.videos.first?.fields["name"]?.count == 128)
    }
}
