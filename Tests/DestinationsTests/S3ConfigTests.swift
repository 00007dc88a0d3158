import Core
import Linux
import Testing

@testable import Config
@testable import Destinations

@Suite("the configuration of a bucket")
struct S3ConfigTests {
    private func read(_ lines: String) throws(ConfigErrors) -> LoadedSettings {
        let text = """
            version: 1
            folders: [{name: door, path: /srv/camera, upload_to: [a]}]
            destinations:
              a:
                type: s3
                endpoint: https://s3.example
                bucket: cameras
            \(lines)
            """
        return try Settings.read(
            [("a.yaml", Array(text.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
    }

    static let mistakes: [(lines: String, expected: String)] = [
        (
            "",
            "a.yaml:7:13: destinations.a.bucket: needs a key: set `access_key` and `secret_key`, or `credentials`, or"
        ),
        (
            "    access_key: {file: /k}\n    secret_key: {file: /s}\n    instance_metadata: {kind: instance}",
            "a.yaml:10:24: destinations.a.instance_metadata: stands in place of a key"
        ),
        (
            "    credentials: {file: /k}\n    instance_metadata: {kind: instance}",
            "a.yaml:9:24: destinations.a.instance_metadata: stands in place of a key"
        ),
        (
            "    instance_metadata: {kind: instance}\n    profile: x",
            "a.yaml:9:14: destinations.a.profile: is `x`, and has no effect without `credentials`"
        ),
        (
            "    instance_metadata: {role: x}",
            "a.yaml:8:24: destinations.a.instance_metadata.kind: `kind` is missing; who gives it"
        ),
        (
            "    instance_metadata: {kind: instance, token: {file: /t}}",
            "a.yaml:8:48: destinations.a.instance_metadata.token: has no effect for `instance`"
        ),
        (
            "    instance_metadata: {kind: container, role: x}",
            "a.yaml:8:48: destinations.a.instance_metadata.role: has no effect for `container`"
        ),
        (
            "    instance_metadata: {kind: container, url: \"http://keys.example/v1\"}",
            "a.yaml:8:47: destinations.a.instance_metadata.url: is another machine, and the key could be read on its way"
        ),
        (
            "    instance_metadata: {kind: instance, url: \"http://169.254.169.254/latest\"}",
            "a.yaml:8:46: destinations.a.instance_metadata.url: ends with its host for `instance`"
        ),
    ]

    @Test("a mistake is told with its line, its column, and what to do, and once", arguments: mistakes)
    func objections(_ lines: String, _ expected: String) throws {
        let error = try #require(throws: ConfigErrors.self) { try read(lines) }
        #expect(error.description.contains(expected), "\(error)")
        #expect(error.problems.count == 1, "\(error)")
    }

    @Test(
        "each way to a key is read, and printed where it stood",
        arguments: [
            "access_key: {file: /k}\n    secret_key: {file: /s}", "credentials: {file: /k}\n    profile: x",
            "instance_metadata: {kind: instance}", "instance_metadata: {kind: instance, role: uploads}",
            "instance_metadata: {kind: container}",
            "instance_metadata: {kind: container, url: \"http://169.254.170.2/v2/x\", token: {env: T}}",
        ])
    func roundTrip(_ lines: String) throws {
        let loaded = try read("    \(lines)")
        let printed = EffectiveConfiguration(loaded).yaml
        let again = try Settings.read(
            [("a.yaml", Array(printed.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
        #expect(again.settings.destinations.map(\.values) == loaded.settings.destinations.map(\.values))
    }
}
