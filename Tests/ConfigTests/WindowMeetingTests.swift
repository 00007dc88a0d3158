import Testing

@testable import Config

@Suite("Windows of several places")
struct WindowMeetingTests {
    private func warnings(policy: String, nas: String, folder: String) throws -> [String] {
        func windows(_ list: String) -> String { list.isEmpty ? "" : ", windows: [\(list)]" }
        let text = """
            version: 1
            policy: {min_battery: 5%\(windows(policy))}
            folders:
              - {name: cam, path: /a, upload_to: [nas, cloud]\(windows(folder))}
            destinations:
              nas: {type: tus, url: "https://nas.example/"\(windows(nas))}
              cloud: {type: tus, url: "https://cloud.example/"}
            """
        return try read(text).warnings.map(\.text)
    }

    private static let never = "nothing of this folder is ever sent to `nas`: the windows of "

    @Test("that are never open together are warned of, of each destination for itself")
    func apart() throws {
        #expect(
            try warnings(policy: "", nas: "'22:00-06:00'", folder: "'08:00-18:00'") == [
                Self.never + "`destinations.nas` and this folder are never open at the same time"
            ])
        // Two of them meet by pairs, and all three never.
        #expect(
            try warnings(policy: "'08:00-12:00', '20:00-21:00'", nas: "'11:00-20:30'", folder: "'20:30-08:30'") == [
                Self.never
                    + "`policy`, `destinations.nas` and this folder are never open at the same time"
            ])
        #expect(try warnings(policy: "'sat 00:00-24:00'", nas: "'sun 00:00-24:00'", folder: "").count == 1)
    }

    @Test("that meet for a minute are not, over midnight and from week to week")
    func together() throws {
        #expect(try warnings(policy: "'08:00-18:00'", nas: "'17:59-20:00'", folder: "").isEmpty)
        #expect(try warnings(policy: "'sun 22:00-06:00'", nas: "'mon 05:00-07:00'", folder: "").isEmpty)
        #expect(try warnings(policy: "", nas: "", folder: "'22:00-06:00'").isEmpty)
    }
}
