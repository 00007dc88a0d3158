import Testing

@testable import Config

@Suite("Windows of several places")
struct WindowOverlapCheckTests {
    private func warnings(policy: String, nas: String, folder: String) throws -> [String] {
        func windows(_ list: String) -> String { list.isEmpty ? "" : ", windows: [\(list)]" }
        let text = """
            version: 1
            policy: {expires_after: 7d\(windows(policy))}
            folders:
              - {name: cam, path: /a, upload_to: [nas, cloud]\(windows(folder))}
            destinations:
              nas: {type: tus, url: "https://nas.example/"\(windows(nas))}
              cloud: {type: tus, url: "https://cloud.example/"}
            """
        return try read(text).warnings.map(\.text)
    }

    private static let never = "nothing of this folder is ever sent to `nas`: the windows of "
    private static let remedy = "let them overlap, or take those of one out"

    @Test("windows that are never open together cause a warning, for each destination")
    func apart() throws {
        #expect(
            try warnings(policy: "", nas: "'22:00-06:00'", folder: "'08:00-18:00'") == [
                Self.never + "`destinations.nas` and this folder are never open at the same time; " + Self.remedy
            ])
        // Each pair of them has a common time, and all three have none.
        #expect(
            try warnings(policy: "'08:00-12:00', '20:00-21:00'", nas: "'11:00-20:30'", folder: "'20:30-08:30'") == [
                Self.never
                    + "`policy`, `destinations.nas` and this folder are never open at the same time; " + Self.remedy
            ])
        #expect(try warnings(policy: "'sat 00:00-24:00'", nas: "'sun 00:00-24:00'", folder: "").count == 1)
    }

    @Test("windows that overlap for a minute cause none, over midnight and from week to week")
    func together() throws {
        #expect(try warnings(policy: "'08:00-18:00'", nas: "'17:59-20:00'", folder: "").isEmpty)
        #expect(try warnings(policy: "'sun 22:00-06:00'", nas: "'mon 05:00-07:00'", folder: "").isEmpty)
        #expect(try warnings(policy: "", nas: "", folder: "'22:00-06:00'").isEmpty)
    }

    private static func warnings(policy: String = "", nas: String = "", folder: String = "") throws -> [String] {
        func rules(_ text: String) -> String { text.isEmpty ? "" : ", \(text)" }
        let text = """
            version: 1
            policy: {expires_after: 7d\(rules(policy))}
            folders:
              - {name: cam, path: /a, upload_to: [nas, cloud]\(rules(folder))}
            destinations:
              nas: {type: tus, url: "https://nas.example/"\(rules(nas))}
              cloud: {type: tus, url: "https://cloud.example/"}
            """
        return try read(text).warnings.map { "\($0.line ?? 0):\($0.column ?? 0): \($0.key): \($0.text)" }
    }

    private static let zero = "and 0 sends nothing; write `unlimited` for no limit, or leave a time without 0"

    @Test("windows closed by `bandwidth: 0` cause one warning, at the bandwidth")
    func stillWithinWindows() throws {
        let told = [
            "2:84: policy.bandwidth: nothing is ever sent: `bandwidth` of `policy` is 0 at all times at which the windows of "
                + "`policy` are open, " + Self.zero
        ]
        let windows = "windows: ['08:00-12:00']"
        #expect(
            try Self.warnings(policy: windows + ", bandwidth: [{limit: 0, when: {between: '07:00-12:00'}}]").map {
                $0.replacing(/^2:\d+/, with: "2:84")
            } == told)
        #expect(
            try Self.warnings(
                policy: windows
                    + ", bandwidth: [{limit: 0, when: {between: '07:00-10:00'}}, {limit: 0, when: {between: '10:00-13:00'}}]"
            )
            .count == 1)
        #expect(
            try Self.warnings(policy: windows + ", bandwidth: [{limit: 0, when: {between: '07:00-11:59'}}]").isEmpty)
        #expect(
            try Self.warnings(policy: windows + ", bandwidth: [{limit: 1 MB/s, when: {between: '07:00-12:00'}}]")
                .isEmpty)
        let but = "bandwidth: [{limit: 0, when: {between: '07:00-12:00', except: [2026-12-24]}}]"
        #expect(try Self.warnings(policy: windows + ", " + but).isEmpty, "uploads run on the excepted day")
    }

    @Test("windows closed by a `bandwidth` of 0 of another place cause a warning too")
    func stillAtAnotherPlace() throws {
        let found = try Self.warnings(
            nas: "bandwidth: [{limit: 0, when: {between: 'sat,sun 00:00-24:00'}}]",
            folder: "windows: ['sat 10:00-12:00']")
        #expect(
            found.map { $0.replacing(/^4:\d+/, with: "4:1") } == [
                "4:1: folders[0]: nothing of this folder is ever sent to `nas`: `bandwidth` of `destinations.nas` is 0 at all "
                    + "times at which the windows of this folder are open, " + Self.zero
            ])
        #expect(
            try Self.warnings(nas: "bandwidth: 0").first?.contains("`destinations.nas` is 0 at all times, and 0 sends")
                == true)
        #expect(
            try Self.warnings(
                folder: "windows: ['fri 22:00-06:00'], bandwidth: [{limit: 0, when: {between: 'fri 00:00-24:00'}}]"
            ).isEmpty)
    }

    @Test("a quota of zero for everything causes a warning, one with a condition does not")
    func nothing() throws {
        func warnings(_ quota: String) throws -> [String] {
            let text = """
                version: 1
                policy: {quotas: [{\(quota)}]}
                folders: [{name: cam, path: /a, upload_to: [nas]}]
                destinations: {nas: {type: tus, url: "https://nas.example/"}}
                """
            return try read(text).warnings.map(\.text)
        }
        let text = "stops all transfers; remove the quota, or raise it"
        #expect(try warnings("per: day, files: 0") == [text])
        #expect(try warnings("per: day, bytes: 0") == [text])
        #expect(try warnings("name: lte, per: day, bytes: 0, when: {metered: true}").isEmpty)
        #expect(try warnings("per: day, files: 1").isEmpty)
    }
}
