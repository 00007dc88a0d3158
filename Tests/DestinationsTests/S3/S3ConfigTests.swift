import Core
import Linux
import Testing

@testable import Config
@testable import Destinations

@Suite("Configuration of a bucket")
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

    /// For a destination with its key.
    private static func keyed(_ line: String, _ expected: String) -> (lines: String, expected: String) {
        ("    access_key: {file: /k}\n    secret_key: {file: /s}\n    \(line)", expected)
    }

    static let mistakes: [(lines: String, expected: String)] = [
        (
            "",
            "a.yaml:7:13: destinations.a.bucket: needs a key: set `access_key` and `secret_key`, or `credentials`, `instance_metadata` or"
        ),
        (
            "    access_key: {file: /k}\n    secret_key: {file: /s}\n    instance_metadata: {kind: instance}",
            "a.yaml:10:24: destinations.a.instance_metadata: replaces a key"
        ),
        (
            "    credentials: {file: /k}\n    instance_metadata: {kind: instance}",
            "a.yaml:9:24: destinations.a.instance_metadata: replaces a key"
        ),
        (
            "    instance_metadata: {kind: instance}\n    profile: x",
            "a.yaml:9:14: destinations.a.profile: is `x`, and has no effect without `credentials`"
        ),
        (
            "    instance_metadata: {role: x}",
            "a.yaml:8:24: destinations.a.instance_metadata.kind: `kind` is missing; the source of the key"
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
            "    presign: {url: https://sign.example}\n    access_key: {file: /k}",
            "a.yaml:8:14: destinations.a.presign: replaces a key, which another service holds"
        ),
        (
            "    presign: {url: https://sign.example}\n    instance_metadata: {kind: instance}",
            "a.yaml:8:14: destinations.a.presign: replaces a key"
        ),
        (
            "    presign: {hosts: [s3.example]}",
            "a.yaml:8:14: destinations.a.presign: names no signer: set `url` or `command`"
        ),
        (
            "    presign: {url: https://sign.example, command: [/usr/local/bin/sign]}",
            "a.yaml:8:20: destinations.a.presign.url: is for a service, and `command` is asked"
        ),
        (
            "    presign: {command: [sign]}",
            "a.yaml:8:24: destinations.a.presign.command: takes a program by its absolute path"
        ),
        (
            "    presign: {url: https://sign.example, headers: {Host: x}}",
            "a.yaml:8:58: destinations.a.presign.headers.Host: cannot be set: it belongs to the protocol"
        ),
        (
            "    presign: {url: https://sign.example, token: {file: /t}, headers: {authorization: {file: /t}}}",
            "destinations.a.presign.headers.authorization: is what `token` sets; take one of them out"
        ),
        (
            "    presign: {url: https://sign.example, hosts: [\"https://s3.example\"]}",
            "destinations.a.presign.hosts: takes hosts, like `s3.amazonaws.com` or `nas.example:9000`, not `https://s3.example`"
        ),
        ("    presign: {}", "destinations.a.presign: sets nothing; take it out"),
        ("    presign: {command: [true]}", "destinations.a.presign.command"),
        ("    presign: {command: [true], hosts: [s3.example]}", "destinations.a.presign.command"),
        ("    instance_metadata: {kind: machine}", "destinations.a.instance_metadata.kind"),
        ("    access_key: {file: /k}", "a.yaml:8:17: destinations.a.access_key: needs `secret_key` beside it"),
        ("    secret_key: {file: /s}", "a.yaml:8:17: destinations.a.secret_key: needs `access_key` beside it"),
        (
            "    session_token: {file: /t}",
            "a.yaml:8:20: destinations.a.session_token: needs `access_key` and `secret_key` beside it"
        ),
        (
            "    access_key: {file: /k}\n    credentials: {file: /c}",
            "a.yaml:9:18: destinations.a.credentials: replaces `access_key`"
        ),
        keyed("credentials: /c", "a.yaml:10:18: destinations.a.credentials: takes a secret as `{file: "),
        keyed("part_size: 4 MiB", "a.yaml:10:16: destinations.a.part_size: is at least 5 MiB for `other`"),
        keyed("part_size: 5.2 MB", "a.yaml:10:16: destinations.a.part_size: is at least 5 MiB for `other`"),
        keyed(
            "storage_class: glacier ir",
            "destinations.a.storage_class: takes letters, digits and `-` `_` `.`, not `glacier ir`"),
        keyed("region: eu/west", "destinations.a.region: takes letters, digits and `-` `_` `.`, not `eu/west`"),
        keyed(
            "encryption: aws:kms\n    kms_key: my key",
            "destinations.a.kms_key: takes letters, digits and `-` `_` `.` `:` `/`, not `my key`"),
        keyed("acl: public", "destinations.a.acl: is not a canned ACL: `public`; there are: private, public-read, "),
        (
            "    instance_metadata: {kind: instance, url: \"http://169.254.169.254/latest\"}",
            "a.yaml:8:46: destinations.a.instance_metadata.url: ends with its host for `instance`"
        ),
    ]

    @Test("a mistake is reported once, with line, column and remedy", arguments: mistakes)
    func objections(_ lines: String, _ expected: String) throws {
        let error = try #require(throws: ConfigErrors.self) { try read(lines) }
        #expect(error.description.contains(expected), "\(error)")
        #expect(error.problems.count == 1, "\(error)")
    }

    @Test(
        "each source of a key is read, and printed in place",
        arguments: [
            "access_key: {file: /k}\n    secret_key: {file: /s}", "credentials: {file: /k}\n    profile: x",
            "instance_metadata: {kind: instance}", "instance_metadata: {kind: instance, role: uploads}",
            "instance_metadata: {kind: container}",
            "instance_metadata: {kind: container, url: \"http://169.254.170.2/v2/x\", token: {env: T}}",
            "presign: {url: \"https://sign.example/x\", token: {env: T}, headers: {X-Box: {env: T}}, ca_file: /ca.pem}",
            "presign: {command: [/usr/bin/ssh, -T, signer@vault.example], hosts: [s3.example, \"nas:9000\"]}",
        ])
    func roundTrip(_ lines: String) throws {
        let loaded = try read("    \(lines)")
        #expect(loaded.warnings.allSatisfy { $0.text.contains("is not set here") }, "\(loaded.warnings)")
        let printed = EffectiveConfiguration(loaded).yaml
        let again = try Settings.read(
            [("a.yaml", Array(printed.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
        #expect(again.settings.destinations.map(\.values) == loaded.settings.destinations.map(\.values))
    }

    @Test("the features of each service are accepted")
    func words() throws {
        let key = "    access_key: {file: /k}\n    secret_key: {file: /s}\n    encryption: aws:kms\n"
        for line in [
            "storage_class: GLACIER_IR", "storage_class: cold-hdd.2", "region: eu-central-1", "region: auto",
            "acl: bucket-owner-full-control", "acl: log-delivery-write", "part_size: 5 MiB", "kms_key: alias/cameras",
            "kms_key: \"arn:aws-cn:kms:eu-west-1:111122223333:key/1234abcd-12ab\"", "kms_key: mrk-12_a.b",
        ] {
            #expect(throws: Never.self) { try read("\(key)    \(line)") }
        }
    }

    @Test("a bucket name cannot precede a numeric address", arguments: ["192.168.1.9:9000", "[fd00::9]"])
    func numbers(_ host: String) throws {
        let values: [String: SettingValue] = [
            "bucket": .text("cameras"), "endpoint": .text("https://\(host)"), "addressing": .text("virtual"),
            "presign.url": .text("https://sign.example"),
        ]
        #expect(S3.objections(values).map(\.key) == ["addressing"])
        #expect(S3.objections(values.merging(["addressing": .text("path")]) { $1 }).isEmpty)
        #expect(S3.objections(values.merging(["endpoint": .text("https://s3.example")]) { $1 }).isEmpty)
    }

    @Test("tags are no secrets, and are shown if there are too many")
    func tags() throws {
        let tags = (0..<11).map { "t\($0): plain-\($0)" }.joined(separator: ", ")
        let error = try #require(throws: ConfigErrors.self) {
            try read("    access_key: {file: /k}\n    secret_key: {file: /s}\n    tags: {\(tags)}")
        }
        #expect(error.problems.count == 1 && error.description.contains("tags: are at most 10"), "\(error)")
        #expect(error.description.contains("t1: plain-1, t2: plain-2"), "\(error)")
    }

    @Test("tags that look like templates are refused, because they would be sent literally")
    func templates() throws {
        let keys = "    access_key: {file: /k}\n    secret_key: {file: /s}\n"
        let error = try #require(throws: ConfigErrors.self) { try read(keys + "    tags: {camera: \"{folder}\"}") }
        #expect(
            error.problems.map(\.text).first?.hasPrefix("has braces, and tags are the same for each object") == true,
            "\(error)")
    }

    @Test("Amazon's regions in China have their own domain")
    func china() {
        func endpoint(_ region: String) -> String? {
            S3.settings(["bucket": .text("cameras"), "region": .text(region)])?.endpoint
        }
        #expect(endpoint("cn-north-1") == "https://s3.{region}.amazonaws.com.cn")
        #expect(endpoint("cn-northwest-1") == "https://s3.{region}.amazonaws.com.cn")
        #expect(endpoint("ca-central-1") == "https://s3.{region}.amazonaws.com")
    }

    @Test("a secret for an unencrypted signer causes a warning, but not for one on this machine")
    func plainText() throws {
        let token = "token: {file: /t}"
        for (line, isWarned) in [
            ("presign: {url: \"http://sign.example/x\", \(token)}", true),
            ("presign: {url: \"http://127.0.0.1:8100/x\", \(token)}", false),
            ("presign: {url: \"http://sign.example/x\"}", false),
            ("instance_metadata: {kind: container, url: \"http://169.254.170.23/x\", \(token)}", false),
        ] {
            let words = try read("    \(line)").warnings.map(\.description)
            #expect(
                words.contains { $0.contains("a.presign.url: the secret goes over the network") } == isWarned,
                "\(words)")
        }
    }
}
