import Core
import Foundation
import Linux
import TestKit
import Testing

@testable import Shell

/// `sluice policy explain` and `policy test`, without a daemon.
@Suite("sluice policy")
struct PolicyVerbTests {
    private let folder = TemporaryFolder()
    private static let text = """
        version: 1
        policy:
          concurrency: {total: 4}
          order: oldest-first
          retry: {first: 1s, max: 1m, attempts: 3, give_up_after: 2d}
          networks:
            - {name: home, ssid: "Home", metered: false}
            - {name: lte, interface: "wwan*", metered: true}
          pause:
            - {name: lte-by-night, when: {network: lte, not: [{between: "22:00-06:00"}, {folder: front}]}}
            - {name: abroad, when: {roaming: true}, override: never}
          bandwidth: [{limit: 2 Mbit/s, when: {between: "07:00-22:00"}}]
          quotas: [{name: plan, per: month, starts_on: 15, bytes: 5 GB, when: {metered: true}}]
        folders:
          - {name: front, path: /srv/front, upload_to: [nas], windows: ["mon-fri 00:00-24:00"], expires_after: 7d}
          - {name: garden, path: /srv/garden, upload_to: [nas, attic], busy: {file: /run/busy}, concurrency: 1}
        destinations:
          nas: {type: tus, url: "https://nas.example/files", bandwidth: [{limit: 100 kB/s, when: {metered: true}}]}
          attic: {type: directory, path: /srv/attic}
        """

    private func run(_ words: [String], _ text: String = Self.text) async throws -> (ExitCode, Screen) {
        let file = try folder.write("a.yaml", Array(text.utf8))
        let screen = Screen()
        let status = await Shell.run(
            ["policy"] + words.map { FilePath($0) } + ["--config", file], console: screen.console(width: 1000),
            signals: nil)
        return (status, screen)
    }

    /// Without line breaks and indents.
    private static func unwrapped(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private func answers(_ words: [String], _ text: String = Self.text) async throws -> (ExitCode, String) {
        let (status, screen) = try await run(["test"] + words, text)
        return (status, Self.unwrapped(screen.output + screen.errors))
    }

    @Test("test asks the conditions of upload_to: a file that none of them takes goes nowhere")
    func routes() async throws {
        let text = Self.text.replacing(
            "name: garden, path: /srv/garden, upload_to: [nas, attic], busy: {file: /run/busy}",
            with:
                "name: garden, path: /srv/garden, upload_to: [{to: nas, if: {kind: video}}, {to: attic, if: {kind: photo}}]"
        )
        let words = ["--folder", "garden", "--on", "home", "--at", "2026-12-01 03:00"]
        let video = try await answers(words + ["--kind", "video"], text)
        #expect(video.0 == .ok)
        #expect(video.1.contains("to nas: it goes"), "\(video.1)")
        #expect(video.1.contains("to attic: `upload_to` does not send it there it sends what fits: "), "\(video.1)")
        let text3 = try await answers(words + ["--kind", "audio"], text)
        #expect(text3.0 == .notNow && !text3.1.contains("it goes"), "\(text3.1)")
        let open = try await answers(words, text)
        #expect(open.0 == .ok)
        #expect(open.1.contains("assumed: `upload_to` sends the file to nas, which it does if "), "\(open.1)")
    }

    @Test("explain says each rule in a sentence, with its place")
    func explain() async throws {
        let (status, screen) = try await run(["explain"])
        #expect(status == .ok)
        let file = folder.path.appending("a.yaml").display
        for (sentence, line) in [
            ("at most 4 uploads run at the same time", 3), ("the oldest file of a folder goes first", 4),
            ("it fails when it was refused 3 times; it fails when nothing was accepted for 2d", 5),
            ("home: a network with Wi-Fi Home is called home and is not metered", 7),
            ("lte-by-night: nothing is sent while the network is lte, and not (it is between 22:00-06:00, or", 10),
            ("abroad: nothing is sent while the modem roams; `sluice allow` makes no exception", 11),
            ("at most 250 kB/s together while it is between 07:00-22:00", 12),
            ("plan: at most 5 GB a month while the network is metered, in months from day 15", 13),
            ("nothing from front is sent outside mon,tue,wed,thu,fri 00:00-24:00", 15),
            ("files from front that were found more than 7d ago are not sent any more", 15),
            ("at most 1 upload runs from garden", 16), ("nothing from garden is sent while /run/busy exists", 16),
            ("at most 100 kB/s to nas together while the network is metered", 18),
        ] {
            let found = Self.unwrapped(screen.output).split(separator: "- ").filter { $0.contains(sentence) }
            #expect(found.count == 1, "\(sentence): \(screen.output)")
            #expect(found.first?.contains("(\(file):\(line))") == true, "\(found)")
        }
        #expect(screen.output.contains("at most 2 uploads run to one destination (default)"))
        let (_, json) = try await run(["explain", "--json"])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        let places = try #require(object["places"] as? [[String: Any]])
        #expect(
            places.map { $0["name"] as? String } == ["policy", "destinations.nas", "folder front", "folder garden"])
    }

    @Test("test names what holds a file for each destination, with file, line and end, and exits with 75")
    func held() async throws {
        let (status, text) = try await answers([
            "--folder", "garden", "--on", "lte", "--roaming", "no", "--at", "2026-12-01 12:00", "--size", "30MB",
        ])
        #expect(status == .notNow)
        #expect(
            text.contains(
                "folder garden, 30.0 MB, Tue 2026-12-01 12:00, over lte: interface wwan*, metered, not roaming"))
        #expect(text.contains("to nas: it is held until 22:00 rule: the rule `lte-by-night` of policy (a.yaml:10)"))
        #expect(text.contains("to attic: it goes assumed:"))
        #expect(text.contains("assumed: bytes to attic stay on this machine"))
        #expect(text.contains("assumed: the quota of policy has room: 5 GB a month while the network is metered"))
        #expect(text.contains("assumed: /run/busy does not say that the machine is busy"))
    }

    @Test("test says what goes, how fast, and until when, and exits with 0")
    func goes() async throws {
        let (status, text) = try await answers([
            "--folder", "garden", "--to", "nas", "--on", "lte", "--roaming", "no", "--at", "2026-12-01 03:00",
        ])
        #expect(status == .ok)
        #expect(
            text.contains(
                "to nas: it goes, at most 100 kB/s (`bandwidth` of destinations.nas) until 06:00; then it is held: "
                    + "rule: the rule `lte-by-night`"), "\(text)")
        #expect(try await answers(["--folder", "front", "--on", "home", "--at", "2026-12-05 12:00"]).0 == .notNow)
        let (_, json) = try await answers(["--folder", "front", "--on", "home", "--at", "2026-12-04 12:00", "--json"])
        #expect(json.contains("\"goes\":true") && json.contains("\"rate\":250000"))
    }

    @Test("test holds what a quota of 0 allows nothing of")
    func zero() async throws {
        let text = Self.text.replacing("bytes: 5 GB", with: "bytes: 0")
        let words = ["--folder", "garden", "--to", "nas", "--roaming", "no", "--at", "2026-12-01 03:00"]
        let held = try await answers(words + ["--on", "lte"], text)
        #expect(held.0 == .notNow)
        #expect(held.1.contains("quota: the quota `plan` of policy (a.yaml:13) allows nothing"), "\(held.1)")
        #expect(!held.1.contains("has room"), "\(held.1)")
        #expect(try await answers(words + ["--on", "home"], text).0 == .ok)
    }

    @Test("explain gives each item of a list of limits its own place, and the number of all that of its item")
    func limits() async throws {
        let text = Self.text.replacing(
            "  order: oldest-first",
            with:
                "  concurrency:\n    - {at_most: 1, when: {metered: true}}\n    - {at_most: 3}\n    - {at_most: 2, when: {roaming: true}}"
        ).replacing("  concurrency: {total: 4}\n", with: "")
        let (status, screen) = try await run(["explain"], text)
        #expect(status == .ok, "\(screen.errors)")
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (sentence, item) in [
            ("at most 3 uploads run at the same time", "at_most: 3"),
            ("at most 1 upload runs at the same time while the network is metered", "at_most: 1"),
            ("at most 2 uploads run at the same time while the modem roams", "at_most: 2"),
        ] {
            let line = try #require(lines.firstIndex { $0.contains(item) }) + 1
            let found = Self.unwrapped(screen.output).split(separator: "- ").first { $0.contains(sentence) } ?? ""
            #expect(found.contains(":\(line))"), "\(sentence): \(screen.output)")
        }
    }

    @Test("a fact that nothing states is said, and a restriction applies")
    func unknown() async throws {
        let night = ["--folder", "garden", "--to", "nas", "--at", "2026-12-01 03:00"]
        let (status, text) = try await answers(night + ["--on", "lte"])
        #expect(status == .notNow)
        #expect(text.contains("it is unknown whether lte roams, and a rule applies then: `--roaming yes|no` states it"))
        #expect(try await answers(night).0 == .notNow)
        let power = Self.text.replacing("order: oldest-first", with: "pause: [{name: p, when: {battery_below: 20%}}]")
            .replacing("  pause:\n    - {name: lte", with: "  # pause\n#    - {name: lte")
            .replacing("    - {name: abroad", with: "#    - {name: abroad")
        let home = night + ["--on", "home"]
        #expect(try await answers(home, power).1.contains("`--battery SHARE|none` states it"))
        #expect(try await answers(home + ["--battery", "none"], power).0 == .ok)
        #expect(try await answers(home + ["--battery", "19%"], power).0 == .notNow)
        #expect(try await answers(home + ["--battery", "20%"], power).0 == .ok)
        let place = power.replacing("battery_below: 20%", with: "lan: false, hotter_than: 70")
        #expect(
            try await answers(home, place).1.contains("`--lan yes|no` states it; `--temperature DEGREES` states it"))
        #expect(try await answers(home + ["--lan", "yes"], place).0 == .ok)
        #expect(try await answers(home + ["--lan", "no"], place).0 == .notNow)
        #expect(try await answers(home + ["--lan", "no", "--temperature", "70"], place).0 == .ok)
        #expect(try await answers(home + ["--lan", "no", "--temperature", "71"], place).0 == .notNow)
    }

    @Test(
        "a mistake in the words is refused",
        arguments: [
            (["test"], ExitCode.usage, "name the folder with --folder; there are: front, garden"),
            (["test", "--folder", "x"], .notFound, "no folder is called `x`"),
            (["test", "--folder", "front", "--to", "attic"], .notFound, "folder front does not upload to `attic`"),
            (
                ["test", "--folder", "front", "--on", "lt"], .notFound,
                "no network is called `lt`\nThere are: home, lte."
            ),
            (["test", "--folder", "front", "--at", "noon"], .usage, "--at takes a time like"),
            (["test", "--folder", "front", "--metered", "maybe"], .usage, "--metered takes yes or no"),
            (["test", "--folder", "front", "--battery", "12"], .usage, "--battery takes a share"),
            (["test", "--folder", "front", "--lan", "maybe"], .usage, "--lan takes yes or no"),
            (
                ["test", "--folder", "front", "--temperature", "hot"], .usage,
                "--temperature takes whole degrees Celsius"
            ),
            (["test", "--folder", "front", "--size", "big"], .usage, "--size takes an amount"),
            (["explain", "--folder", "front"], .usage, "--folder belongs to `policy test`"),
            (["explian"], .usage, "takes the word `explain` or `test`, not `explian`"),
        ] as [([String], ExitCode, String)])
    func mistakes(_ words: [String], _ wanted: ExitCode, _ message: String) async throws {
        let (status, screen) = try await run(words)
        #expect(status == wanted)
        #expect(screen.errors.contains(message), "\(screen.errors)")
    }
}
