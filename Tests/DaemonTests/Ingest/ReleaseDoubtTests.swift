import API
import Core
import Testing

@testable import Config
@testable import Daemon
@testable import Destinations

@Suite("Checks of destinations whose answer lets sources be released")
struct ReleaseDoubtTests {
    private func doubts(_ after: String, _ destination: String) throws -> [CheckFinding] {
        let text = """
            version: 1
            folders: [{name: door, path: /srv/camera, upload_to: [a], after_upload: \(after)}]
            destinations:
              a: \(destination)
            """
        let loaded = try Settings.read(
            [("a.yaml", Array(text.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
        return Checks.releaseDoubts(loaded.settings, CheckRequest())
    }

    static let byStatus =
        "{type: chunked-form, preset: dropzone, url: 'https://a.example/u', success: {status: [200]}}"
    static let byBody = "{type: chunked-form, preset: dropzone, url: 'https://a.example/u'}"

    @Test(
        "check warns of assumed completeness and of accepted refusals",
        arguments: ["gone: assume_complete", "final_error: accept"])
    func assumptions(_ setting: String) throws {
        let found = try doubts("{source: delete}", "{type: tus, url: 'https://a.example/u', \(setting)}")
        #expect(found.map(\.verdict) == [.warning] && found.first?.detail.contains("`\(setting)`") == true)
        #expect(try doubts("{source: delete}", "{type: tus, url: 'https://a.example/u'}").isEmpty)
    }

    @Test("check warns of rules that compare only the status, and only with delete and move")
    func byStatus() throws {
        for after in ["{source: delete}", "{source: move, to: '/srv/done/{name}'}", "{source: keep, for: 30d}"] {
            let found = try doubts(after, Self.byStatus)
            #expect(found.map(\.verdict) == [.warning], "\(after)")
            #expect(found.first?.about == "folder" && found.first?.name == "door")
            let detail = found.first?.detail ?? ""
            #expect(detail.contains("`a`") && detail.contains("`success.json`"))
            #expect(try doubts(after, Self.byBody).isEmpty)
        }
        #expect(try doubts("{source: keep}", Self.byStatus).isEmpty)
    }
}
