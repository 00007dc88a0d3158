import Core
import Linux
import TestKit
import Testing

/// Values that only a kind of destination can check.
@Suite("Values that a destination cannot use", .timeLimit(.minutes(Patience.minutes(1))))
struct UnusableSettingTests {
    @Test(
        "the start and the check name file, line, column and the whole key",
        arguments: ["run", "check", "config"])
    func places(_ verb: String) async throws {
        let folder = TemporaryFolder()
        try Files.makeFolders(folder.path.appending("drop"))
        let file = try folder.write(
            "c.yaml",
            Array(
                """
                version: 1
                state: \(folder.path.appending("state").display)
                folders: [{name: a, path: \(folder.path.appending("drop").display), upload_to: [film]}]
                destinations:
                  film:
                    type: vimeo
                    token: {env: NOBODY}
                    video:
                      privacy: {view: Nobody}
                """.utf8))
        let child = try Child(
            Setting.binary(), [verb, "--config", file.display], output: folder.path.appending("out"),
            errors: folder.path.appending("err"))
        let ending = try await child.end(within: .seconds(30))
        #expect(ending == .status(78))
        let said = (try child.standardOutput() + child.standardError()).split { $0.isWhitespace }.joined(separator: " ")
        #expect(said.contains("c.yaml:9:23: destinations.film.video.privacy.view:"), "\(said)")
        #expect(said.contains("did you mean `nobody`"), "\(said)")
    }
}
