import Core
import Testing

@testable import Config

@Suite("Settings")
struct SettingsTests {
    @Test("unset settings have defaults")
    func defaults() throws {
        let loaded = try read(minimal)
        let settings = loaded.settings
        #expect(loaded.warnings.isEmpty)
        #expect(settings.state == "/var/lib/sluice")
        #expect(
            settings.staging
                == StagingSettings(path: "/var/lib/sluice/staging", copy: .auto, maxSize: nil, keepFree: 1_000_000_000))
        #expect(settings.control.socket == "/run/sluice/control.sock")
        #expect(
            settings.policy == PolicySettings(total: 3, perDestination: 2, order: .newestFirst, retry: Backoff()))
        let folder = try #require(settings.folders.first)
        #expect(folder.watch == WatchRule(name: "door", path: "/srv/camera"))
        #expect(folder.uploadTo == ["nas"])
        #expect(folder.afterUpload == .keep)
        #expect(folder.name.source == "{folder}/{relative}")
        #expect(folder.empty == .skip)
        #expect(folder.duplicates == .upload)
        #expect(folder.policy == PolicyOverrides())
        #expect(
            settings.destinations == [
                DestinationSettings(
                    name: "nas", type: "tus", values: ["url": .text("https://nas.example/files")],
                    policy: PolicyOverrides(), place: "a.yaml:7:3")
            ])
    }

    @Test("paths default to the folders that systemd provides, unless the file sets others")
    func surroundings() throws {
        let environment = ["STATE_DIRECTORY": "/s/a:/s/b", "RUNTIME_DIRECTORY": "/run/x"]
        let found = try read(minimal, environment: environment).settings
        #expect(found.state == "/s/a")
        #expect(found.staging.path == "/s/a/staging")
        #expect(found.control.socket == "/run/x/control.sock")
        let named = try read(minimal + "\nstate: /t\ncontrol: {socket: /c}", environment: environment).settings
        #expect(named.state == "/t")
        #expect(named.staging.path == "/t/staging")
        #expect(named.control.socket == "/c")
    }

    @Test("metric files are written every 30 s unless configured otherwise, and none by default")
    func metrics() throws {
        #expect(try read(minimal).settings.metrics == MetricsSettings())
        let some = try read(minimal + "\nmetrics: {status_file: /run/sluice/status.json}").settings.metrics
        #expect(some == MetricsSettings(statusFile: "/run/sluice/status.json", every: .seconds(30)))
        let both = try read(minimal + "\nmetrics: {textfile: /m/a.prom, status_file: /m/s.json, every: 1h}").settings
        #expect(both.metrics == MetricsSettings(textfile: "/m/a.prom", statusFile: "/m/s.json", every: .seconds(3600)))
    }

    @Test(
        "ended uploads stay for a week, a month and an hour, and in the history for three months, unless configured"
    )
    func retention() throws {
        let day = Duration.seconds(86_400)
        let standard = try read(minimal).settings.lists
        #expect(standard == ListRetention())
        #expect([standard.completed.time, standard.failed.time, standard.history] == [day * 7, day * 30, day * 90])
        #expect(standard.completed.most == 10_000 && standard.failed.most == 1_000 && standard.cancelled.most == nil)
        let own = try read(minimal + "\nretention: {completed: 10s, failed: 1m, cancelled: 0, history: never}").settings
        #expect(own.lists.completed == .init(time: .seconds(10), most: 10_000))
        #expect(own.lists.failed == .init(time: .seconds(60), most: 1_000))
        #expect(own.lists.cancelled.time == nil && own.lists.history == nil)
    }

    @Test("hooks are commands or addresses, and receive end events unless configured")
    func hooks() throws {
        let hooks = try read(
            minimal + """

                hooks:
                  - command: [/usr/local/bin/tell, --camera]
                  - name: web
                    on: [safe_to_remove]
                    url: https://example.org/hook
                    headers: {X-Token: {env: TOKEN}}
                    secret: {env: SECRET}
                    network: any
                    timeout: 5s
                    retry: {first: 1s, attempts: 3}
                    give_up_after: 2d
                """
        ).settings.hooks
        #expect(
            hooks == [
                Hook(name: "hook-1", target: .command(CommandHook(["/usr/local/bin/tell", "--camera"]))),
                Hook(
                    name: "web", on: [.safeToRemove],
                    target: .web(
                        WebHook(
                            url: "https://example.org/hook", headers: ["X-Token": .environment("TOKEN")],
                            secret: .environment("SECRET"), network: .any)),
                    timeout: .seconds(5),
                    retry: Backoff(first: .seconds(1), ceiling: .seconds(1800), attempts: 3),
                    giveUpAfter: .seconds(2 * 86_400)),
            ])
        #expect(hooks[1].target.shown == "https://example.org")
    }

    @Test("`before_upload` is accepted in `policy`, a folder and a destination")
    func beforeUpload() throws {
        let settings = try read(
            """
            version: 1
            folders:
              - {name: door, path: /srv/camera, upload_to: [nas], before_upload: {command: [/bin/may, "--go"], timeout: 1m}}
            destinations:
              nas: {type: tus, url: "https://nas.example/files", before_upload: {command: [/bin/may]}}
            policy: {before_upload: {command: [/bin/all], timeout: 2s}}
            """
        ).settings
        #expect(
            settings.folders[0].policy.beforeUpload
                == BeforeUpload(command: ["/bin/may", "--go"], timeout: .seconds(60)))
        #expect(
            settings.destinations[0].policy.beforeUpload == BeforeUpload(command: ["/bin/may"], timeout: .seconds(10)))
        #expect(settings.policy.beforeUpload == BeforeUpload(command: ["/bin/all"], timeout: .seconds(2)))
        #expect(settings.beforeUploads.map(\.place) == ["policy", "folder door", "destinations.nas"])
        #expect(settings.hasBeforeUploadRules)
    }

    @Test("`busy` is accepted in three places, as a file or a command with its times")
    func busy() throws {
        let settings = try read(
            """
            version: 1
            folders:
              - {name: door, path: /srv/camera, upload_to: [nas], busy: {file: /run/camera/./recording}}
            destinations:
              nas:
                type: tus
                url: https://nas.example/files
                busy: {command: [/usr/bin/pgrep, -x, ffmpeg], every: 5s, timeout: 500ms}
            policy:
              busy: {command: [/usr/local/bin/is-recording]}
            """
        ).settings
        #expect(settings.folders[0].policy.rules.busy == BusyRule(.file("/run/camera/recording")))
        #expect(
            settings.destinations[0].policy.rules.busy
                == BusyRule(
                    .command(["/usr/bin/pgrep", "-x", "ffmpeg"]), every: .seconds(5), timeout: .milliseconds(500)))
        #expect(
            settings.policy.rules.busy
                == BusyRule(
                    .command(["/usr/local/bin/is-recording"]), every: .seconds(30), timeout: .seconds(10)))
    }

    @Test("quotas are accepted in three places, each with its exemptions")
    func quotas() throws {
        let settings = try read(
            """
            version: 1
            folders:
              - {name: door, path: /srv/camera, upload_to: [nas], quotas: [{per: hour, files: 500}]}
            destinations:
              nas:
                type: tus
                url: https://nas.example/files
                quotas: [{per: week, bytes: 1 GB}, {name: lte, per: week, starts_on: sun, bytes: 0, when: {metered: true}}]
            policy:
              quotas:
                - {per: day, bytes: 20 GB, files: 3}
                - {name: lte, per: day, bytes: 2 GB, when: {metered: true}}
                - {name: in, per: day, bytes: 2 GB, direction: received, when: {metered: true}}
                - {name: sum, per: day, bytes: 3 GB, direction: both, when: {metered: true}}
                - {per: month, bytes: 300 GB}
                - {per: month, starts_on: 31, bytes: 8 MiB}
            """
        ).settings
        #expect(settings.folders[0].policy.rules.quotas == [Quota(period: .hour, files: 500)])
        #expect(
            settings.destinations[0].policy.rules.quotas == [
                Quota(period: .week(startsOn: .mon), bytes: 1_000_000_000),
                Quota(period: .week(startsOn: .sun), bytes: 0, name: "lte", when: .fact(.metered(true))),
            ])
        #expect(
            settings.policy.rules.quotas == [
                Quota(period: .day, bytes: 20_000_000_000, files: 3),
                Quota(period: .day, bytes: 2_000_000_000, name: "lte", when: .fact(.metered(true))),
                Quota(
                    period: .day, bytes: 2_000_000_000, direction: .received, name: "in", when: .fact(.metered(true))),
                Quota(period: .day, bytes: 3_000_000_000, direction: .both, name: "sum", when: .fact(.metered(true))),
                Quota(period: .month(startsOn: 1), bytes: 300_000_000_000),
                Quota(period: .month(startsOn: 31), bytes: 8 << 20),
            ])
        #expect(settings.hasQuotas)
        #expect(try !read(minimal).settings.hasQuotas)
    }

    @Test("every key of a folder is read")
    func folder() throws {
        let folder = try #require(
            try read(
                """
                version: 1
                folders:
                  - name: front.door-1
                    path: /srv//camera/./front/
                    recursive: false
                    include: ["*.mp4"]
                    exclude: ["x/*.tmp", '\\[*', "[]a]*"]
                    settle: {quiet_for: 1h30m, writers: skip}
                    existing: skip
                    empty: upload
                    duplicates: skip
                    upload_to: [b, a]
                    after_upload: {source: move, to: "/srv/done/{year}/{name}"}
                    priority: -5
                    remote_name: "{name}"
                    metadata: {title: "{folder}", 'x!': 3}
                    key: "{relative}"
                    context: {camera: front}
                    concurrency: 4
                    retry: {attempts: 3}
                policy: {retry: {first: 7s}}
                destinations:
                  a: {type: directory, path: /a}
                  b: {type: directory, path: /b}
                """
            ).settings.folders.first)
        #expect(
            folder
                == FolderSettings(
                    watch: WatchRule(
                        name: "front.door-1", path: "/srv/camera/front", recursive: false, include: ["*.mp4"],
                        exclude: ["x/*.tmp", "\\[*", "[]a]*"], quietFor: .seconds(5400), writers: .skip,
                        existing: .skip),
                    routes: [UploadRoute(to: "b"), UploadRoute(to: "a")],
                    afterUpload: .move(to: try Template("/srv/done/{year}/{name}")),
                    empty: .upload, duplicates: .skip, priority: -5, name: try Template("{name}"),
                    metadata: ["title": try Template("{folder}"), "x!": try Template("3")],
                    key: try Template("{relative}"), context: ["camera": try Template("front")],
                    policy: PolicyOverrides(
                        concurrency: 4, retry: Backoff(first: .seconds(7), ceiling: .seconds(1800), attempts: 3))))
    }

    @Test(
        "the handling of sources that may be open is read",
        arguments: [nil, UnsureReleaseRule.keep, .delete, .after(.seconds(600))])
    func releaseUnsure(_ wanted: UnsureReleaseRule?) throws {
        let text = wanted.map { ", release_unsure: \($0.written)" } ?? ""
        let settings = try read(
            """
            version: 1
            folders: [{name: cam, path: /cam, upload_to: [a]\(text)}]
            destinations: {a: {type: directory, path: /a}}
            """
        ).settings
        #expect(settings.folders[0].releaseUnsure == wanted)
    }

    @Test(
        "the handling of incomplete recordings is read",
        arguments: [
            ("{}", .skip, .upload, 3600), ("{container: check}", .check, .upload, 3600),
            ("{container: check, broken: wait}", .check, .wait, 3600),
            ("{container: check, broken_after: 5m}", .check, .upload, 300),
        ] as [(String, WatchRule.ContainerCheck, WatchRule.Broken, Int)])
    func containers(
        _ settle: String, _ container: WatchRule.ContainerCheck, _ broken: WatchRule.Broken, _ seconds: Int
    ) throws {
        let watch = try #require(
            try read(
                """
                version: 1
                folders: [{name: a, path: /a, upload_to: [b], settle: \(settle)}]
                destinations: {b: {type: directory, path: /b}}
                """
            ).settings.folders.first?.watch)
        #expect([watch.container == container, watch.broken == broken] == [true, true])
        #expect(watch.brokenAfter == .seconds(seconds))
    }

    @Test("every kind of key that a destination declares is read")
    func destination() throws {
        let destination = try #require(
            try read(
                """
                version: 1
                folders: []
                destinations:
                  d:
                    type: tus
                    url: "https://nas.example:8443/a?b=c"
                    token: {file: /etc/t}
                    headers: {X-A: b c, X-B: {env: B}}
                    checksum: sha256
                    chunk_size: 8 MiB
                    timeout: 90s
                    verify_tls: false
                    parallel: 3
                    note: "a: b"
                    title: "{name}"
                    concurrency: 2
                    retry: {first: 500ms, max: 1d}
                """
            ).settings.destinations.first)
        #expect(
            destination.values == [
                "url": .text("https://nas.example:8443/a?b=c"), "token": .secret(.file("/etc/t")),
                "headers": .map(["X-A": .literal("b c"), "X-B": .environment("B")]), "checksum": .text("sha256"),
                "chunk_size": .bytes(8 << 20), "timeout": .duration(.seconds(90)), "verify_tls": .flag(false),
                "parallel": .whole(3), "note": .text("a: b"), "title": .template(try Template("{name}")),
            ])
        #expect(
            destination.policy
                == PolicyOverrides(
                    concurrency: 2, retry: Backoff(first: .milliseconds(500), ceiling: .seconds(86_400))))
    }

    @Test(
        "amounts are read with their units",
        arguments: [
            ("0", 0), ("1B", 1), ("20 GB", 20_000_000_000), ("8 MiB", 8 << 20), ("1.5 kB", 1500), ("0.001 kB", 1),
            ("8388607 TiB", 8_388_607 << 40),
        ] as [(String, Int64)])
    func amounts(_ text: String, _ bytes: Int64) throws {
        #expect(try read(minimal + "\nstaging: {keep_free: \(text)}").settings.staging.keepFree == bytes)
    }

    @Test(
        "amounts with an unknown unit are refused",
        arguments: [
            "20", "20 Gb", "GB", "1.5", "1. GB", "1.2345 GB", "20 GB GB", "20GB1", "1e3 kB", "+1 kB", "1,5 kB", "\"\"",
        ])
    func badAmounts(_ text: String) {
        #expect(objections(to: minimal + "\nstaging: {keep_free: \(text)}").hasPrefix("a.yaml:8:"))
    }

    @Test(
        "durations are read with their units",
        arguments: [
            ("90s", 90_000), ("1h30m", 5_400_000), ("500ms", 500), ("1 h 30 m", 5_400_000), ("0.5s", 500),
            ("2h0m1s", 7_201_000),
        ])
    func durations(_ text: String, _ milliseconds: Int64) throws {
        let retry = try read(minimal + "\npolicy: {retry: {first: \(text), max: 1d}}").settings.policy.retry
        #expect(retry.first == .milliseconds(milliseconds))
        #expect(retry.ceiling == .seconds(86_400))
    }

    @Test(
        "invalid durations are refused",
        arguments: ["90", "1:30", "1m1h", "1h1h", "h", "1h30", "-1s", "1w", "99ms", "25h", "0"])
    func badDurations(_ text: String) {
        #expect(objections(to: minimal + "\npolicy: {retry: {first: \(text), max: 7d}}").hasPrefix("a.yaml:8:"))
    }

    @Test("a configuration without folders is accepted and reported")
    func nothing() throws {
        #expect(try read("version: 1").warnings.map(\.text) == ["no folder is watched; add one under `folders`"])
    }
}
