import Core
import Linux
import TestKit
import Testing

@testable import Config

/// The root of the repository in which this file was compiled.
private let top = Repository.root

@Suite("The effective configuration")
struct EffectiveTests {
    private static let names = [
        "sluice.yaml", "two-destinations.yaml", "move-after-upload.yaml", "cameras.yaml", "nas-folder.yaml",
        "without-copies.yaml", "by-the-clock.yaml", "metered.yaml", "recording.yaml", "hooks.yaml",
    ]

    /// Without the differences that the place of the file or hidden text causes.
    private static func comparable(_ settings: Settings) -> Settings {
        var settings = settings
        for index in settings.destinations.indices {
            settings.destinations[index].place = ""
            for (key, value) in settings.destinations[index].values {
                guard case .map(let map) = value else { continue }
                settings.destinations[index].values[key] = .map(
                    map.mapValues { if case .literal = $0 { .literal("hidden") } else { $0 } })
            }
        }
        return settings
    }

    @Test(
        "the effective configuration of each example loads with the same meaning, without a warning", arguments: names)
    func examples(_ name: String) throws {
        let loaded = try Settings.load(
            top.appending("config").appending(FilePath(name)), types: types, disk: .unchecked)
        let text = EffectiveConfiguration(loaded).yaml
        let again = try read(text)
        #expect(Self.comparable(again.settings) == Self.comparable(loaded.settings))
        #expect(again.warnings.map(\.text) == loaded.warnings.map(\.text))
        // The second output leaves only keys without a value to a default.
        let twice = EffectiveConfiguration(again)
        #expect(twice.rows.allSatisfy { $0.from != "default" && $0.from != "as policy.retry" })
    }

    @Test(
        "arguments that may be passwords are hidden, and no other",
        arguments: [
            (["/bin/curl", "-u", "me:secret", "-sS", "http://h/"], ["/bin/curl", "-u", "***", "-sS", "http://h/"]),
            (["/bin/curl", "-ume:secret", "--user=me:secret"], ["/bin/curl", "-u***", "--user=***"]),
            (["/bin/curl", "-H", "X-Site: secret", "-o", "a:b"], ["/bin/curl", "-H", "***", "-o", "a:b"]),
            (["/bin/gpg", "--passphrase", "secret", "-u", "key"], ["/bin/gpg", "--passphrase", "***", "-u", "key"]),
            (
                ["/bin/sh", "-c", "curl -u me:secret -H 'X-Key: secret' http://me:secret@h/ && echo token=secret"],
                ["/bin/sh", "-c", "curl -u *** -H *** http://***@h/ && echo token=***"]
            ),
            (["/bin/sh", "-c", "date -u +%H:%M"], ["/bin/sh", "-c", "date -u +%H:%M"]),
            (["sh", "-c", #"x="$(curl -u me:pw URL)"; y"#], ["sh", "-c", #"x="$(curl -u *** URL)"; y"#]),
            (["sh", "-c", #"x="$(curl -u "me:pw" -o "a b")""#], ["sh", "-c", #"x="$(curl -u *** -o "a b")""#]),
            (["sh", "-c", #"x="`curl -u "me:pw" URL`""#], ["sh", "-c", #"x="`curl -u *** URL`""#]),
            (["sh", "-c", "sh -c 'curl -u me:pw URL'"], ["sh", "-c", "sh -c 'curl -u *** URL'"]),
            (
                ["sh", "-c", #"ssh nas "curl -u \"me:pa ss\" -o \"a b\"""#],
                ["sh", "-c", #"ssh nas "curl -u *** -o \"a b\"""#]
            ),
            (
                ["sh", "-c", #"sh -c "sh -c 'curl -H \"X-Key: pa ss\"; y'"; z"#],
                ["sh", "-c", #"sh -c "sh -c 'curl -H ***; y'"; z"#]
            ),
            (
                ["sh", "-c", #"say --text="at 10:30 \$(date -u)" 'a b' "#],
                ["sh", "-c", #"say --text="at 10:30 \$(date -u)" 'a b' "#]
            ),
            (["sh", "-c", #"echo "token: abc def""#], ["sh", "-c", #"echo "token: ***""#]),
            (["/opt/may", "--name", "a b", "10:30"], ["/opt/may", "--name", "a b", "10:30"]),
        ])
    func commands(_ words: [String], _ shown: [String]) {
        #expect(EffectivePieces(hides: true).shown(words) == shown)
        #expect(EffectivePieces(hides: false).shown(words) == words)
    }

    @Test("metadata and other texts are shown without credentials")
    func metadata() throws {
        let loaded = try read(
            """
            version: 1
            folders: [{name: cam, path: /cam, upload_to: [nas], metadata: {authorization: "Bearer abcDEF123", token: hunter2, title: "{stem}", key_name: a}}]
            destinations: {nas: {type: tus, url: "http://h/"}}
            """)
        let text = EffectiveConfiguration(loaded).yaml
        for secret in ["abcDEF123", "hunter2"] { #expect(!text.contains(secret), "\(text)") }
        #expect(text.contains("{stem}"))
    }

    @Test("the secrets of a configuration are found in each of its places")
    func configuredSecrets() throws {
        let settings = try read(
            """
            version: 1
            folders: []
            destinations:
              nas: {type: tus, url: "http://h/files?site=query-value", token: {env: A}, http: {headers: {X: {literal: b}, Y: {file: /c}}}}
            control: {listen: ":8484", tokens: [{name: me, secret: {env: E}}], insecure_http: true}
            hooks: [{name: web, url: "https://h.example/hook-path?x=1", on: [added], secret: {env: F}, headers: {X: {env: G}}}, {name: run, on: [added], command: [/bin/run, -u, "me:secret-argument", "--token=t0ken"]}]
            """
        ).settings
        let secrets = ConfiguredSecrets(of: settings)
        #expect(
            Set(secrets.sources)
                == [
                    .environment("A"), .literal("b"), .file("/c"), .environment("E"),
                    .environment("F"),
                    .environment("G"),
                ])
        #expect(
            Set(secrets.texts) == [
                "query-value", "1", "/hook-path?x=1", "me:secret-argument", "secret-argument", "t0ken",
            ])
    }

    @Test(
        "of the arguments of a command the pieces that may be secrets are found, each alone, and no others",
        arguments: [
            (["/bin/curl", "-u", "me:s3cretpw", "-o", "/srv/out"], ["me:s3cretpw", "s3cretpw"]),
            (["/bin/curl", "-ume:s3cretpw", "--token=a=b"], ["me:s3cretpw", "s3cretpw", "a=b"]),
            (["/bin/curl", "--user=me:a:b", "--passphrase", "word"], ["me:a:b", "a:b", "word"]),
            (["sh", "-xc", "set -e; curl -u me:s3cretpw URL"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "OUT=/srv/camera/front; curl -u 'me:pa ss' URL"], ["me:pa ss", "pa ss"]),
            (
                ["sh", "-c", "A=/srv/x curl \"https://me:pw@h/?key=k1&a=2\" && echo token=t1"],
                ["me:pw", "pw", "k1", "t1"]
            ),
            (["/bin/curl", "-H", "Accept: text/plain"], ["Accept: text/plain"]),
            (
                ["sh", "-c", "curl -H 'Authorization: Bearer abc' URL"],
                ["Bearer abc", "abc"]
            ),
            (["/opt/may", "--name", "a b", "10:30", "A=/srv/x"], []),
            (["sh", "-c", "x=$(curl -u me:s3cretpw) ; y"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "(curl  -u  me:s3cretpw); y"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "curl -u 'me:s3cretpw'; y"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "curl -u me:s3cretpw>/dev/null 2>&1"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "curl --user=me:s3cretpw&& true"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "put --password s3cretpw; y"], ["s3cretpw"]),
            (["sh", "-c", "PGPASSWORD=s3cretpw psql"], ["s3cretpw"]),
            (["/bin/curl", "-sSu", "me:s3cretpw"], ["me:s3cretpw", "s3cretpw"]),
            (["/bin/wget", "--http-password=s3cretpw"], ["s3cretpw"]),
            (["timeout", "9", "sshpass", "-p", "s3cretpw", "ssh", "-p", "22", "-u", "a:b"], ["s3cretpw"]),
            (["sshpass", "-e", "scp", "-p", "/srv/camera/front.mp4", "nas:/x"], []),
            (["smbclient", "-U", #"DOM\joe%s3cretpw"#], ["s3cretpw"]),
            (["sh", "-c", "mysqldump -ps3cretpw --port=1 -p front | gzip -p2"], ["s3cretpw"]),
            (["rsync", "-u", "nas.example:/srv/camera/front", "/mnt"], []),
            (["sh", "-c", "if exec ionice -c3 rclone copy -u nas:camera/front /x; then y; fi"], []),
            (["sh", "-c", "A=1 /usr/bin/docker -H tcp://nas:2375 run -u 1000:1000 x"], []),
            (["sh", "-c", "pg_dump --no-password cameradb; wget --ask-password https://nas/upload"], []),
            (["/usr/bin/sudo", "curl", "-u", "me:s3cretpw", "URL"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "docker run --rm curlimages/curl:8 -sSu me:s3cretpw"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "if ! runuser -u cam -- curl --user=me:s3cretpw"], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", #"ssh nas "sudo curl -sSume:s3cretpw URL""#], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", "sudo smbclient -U me%s3cretpw"], ["s3cretpw"]),
            (["sh", "-c", "lftp -u me,s3cretpw nas"], ["s3cretpw"]),
            (
                ["sh", "-c", "PASS='s3cretpw'; MQTT_PW=pw2 KEY=k3 mosquitto_pub -P pw4"],
                ["s3cretpw", "pw2", "k3", "pw4"]
            ),
            (["sh", "-c", "curl -d 'user=me&pass=s3cretpw' https://x/?a=1"], ["s3cretpw"]),
            (["mount.cifs", "-o", "user=me,pass=s3cretpw,ro", "//nas/x"], ["s3cretpw"]),
            (
                ["curl", "--oauth2-bearer", "s3cretpw", "-b", "session=abc", "-E", "/c.pem:pw"],
                ["s3cretpw", "session=abc", "pw"]
            ),
            (
                ["sh", "-c", "net -U me%s3cretpw; redis-cli -a pw2; 7za a -ppw3; ldapsearch -w pw4"],
                ["s3cretpw", "pw2", "pw3", "pw4"]
            ),
            (
                ["sh", "-c", "docker login -u me -p s3cretpw; docker run -p 80:80 x; xh -a me:pw2"],
                ["s3cretpw", "me:pw2", "pw2"]
            ),
            (["/bin/curl", "-Hauthorization:s3cretpw"], ["s3cretpw"]),
            (["mosquitto_pub", "-t", "home/login", "-P", "s3cretpw"], ["s3cretpw"]),
            (["smbclient", "//nas/http", "-U", "me%s3cretpw"], ["s3cretpw"]),
            (
                ["sh", "-c", "7z a /srv/backup/date -ps3cretpw; zip login -P pw2; redis-cli -h net -a pw3"],
                ["s3cretpw", "pw2", "pw3"]
            ),
            (["sh", "-c", "docker run -u www-data:www-data x; git push -u origin:main"], []),
            (["sh", "-c", "socat -u FILE:/dev/video0 x; mail -s 'pass: all uploaded' me; ffmpeg -pass 1 x"], []),
            (["sh", "-c", #"pass=$(cat /run/x); PGPASSWORD=$pass psql; PASS="$pass" y"#], []),
            (["sh", "-c", "mosquitto_pub -u me -P s3cretpw"], ["s3cretpw"]),
            (["sh", "-c", "openssl rsa -passin pass:s3cretpw"], ["s3cretpw"]),
            (["sh", "-c", "PGPASSWORD='s3cret, pw#' psql"], ["s3cret, pw#"]),
            (["sh", "-c", #"export RESTIC_PASSWORD="s3cret pw"; y"#], ["s3cret pw"]),
            (["env", "MYSQL_PWD=s3cret pw", "mysqldump"], ["s3cret pw"]),
            (["sh", "-c", "SSHPASS=s3cretpw BORG_PASSPHRASE=s3cret,2 sshpass -e ssh nas"], ["s3cretpw", "s3cret,2"]),
            (["sh", "-c", #"TOKEN="$(curl -u me:s3cretpw URL)""#], ["me:s3cretpw", "s3cretpw"]),
            (
                ["sh", "-c", #"curl "-u" "me:s3cretpw" '--user=me:s3cret=2'"#],
                ["me:s3cretpw", "s3cretpw", "me:s3cret=2", "s3cret=2"]
            ),
            (["sh", "-c", #"x="$(curl -u me:s3cretpw URL)""#], ["me:s3cretpw", "s3cretpw"]),
            (["sh", "-c", #"ssh nas "curl -u \"me:pa ss\" URL""#], ["me:pa ss", "pa ss"]),
        ])
    func secretArguments(_ words: [String], _ secrets: [String]) { #expect(ShownCommand(words).secrets == secrets) }

    @Test("listeners and written files are shown, and no token")
    func outside() throws {
        let loaded = try read(
            """
            version: 1
            folders: []
            destinations: {}
            control: {listen: ":8484", tokens: [{name: me, secret: {env: TOKEN}}, {name: wall, role: view, secret: {env: WALL}}], hosts: [nas.lan], tls: {certificate: /c.pem, key: /k.pem}, web: false}
            metrics: {textfile: /m/sluice.prom, every: 20s}
            retention: {completed: never, failed: 90m}
            """)
        let text = EffectiveConfiguration(loaded).yaml
        let again = try read(text)
        #expect(again.settings.control == loaded.settings.control)
        #expect(again.settings.control.remote?.hosts == ["nas.lan"])
        #expect(again.settings.control.remote?.tokens.map(\.role) == [.operate, .view])
        #expect(again.settings.control.remote?.servesPage == false)
        #expect(again.settings.metrics == loaded.settings.metrics)
        #expect(again.settings.lists == loaded.settings.lists && again.settings.lists.completed.time == nil)
    }

    @Test("hooks are shown with their places, without the path of an address or a secret")
    func hooks() throws {
        let loaded = try read(
            """
            version: 1
            folders: [{name: cam, path: /cam, upload_to: [nas], before_upload: {command: [/bin/may, go], timeout: 5s}}]
            destinations: {nas: {type: tus, url: "http://nas/"}}
            hooks:
              - {command: [/bin/tell, --token=hunter2], on: [failed], folders: [cam], destinations: [nas], give_up_after: 1h}
              - {name: web, url: "https://h/", secret: {env: KEY}, headers: {X-Site: {env: SITE}}, ca_file: /ca.pem, network: any}
              - {name: secret, url: "https://h.example/hunter2?x=hunter2", secret: {env: KEY}}
            policy: {before_upload: {command: [/bin/may, --password=hunter2], timeout: 3s}}
            """)
        let effective = EffectiveConfiguration(loaded)
        let again = try read(effective.yaml)
        #expect(again.settings.hooks[1] == loaded.settings.hooks[1])
        #expect(again.settings.hooks[0].folders == ["cam"])
        #expect(again.settings.folders[0].policy == loaded.settings.folders[0].policy)
        #expect(
            again.settings.policy.beforeUpload
                == BeforeUpload(command: ["/bin/may", "--password=***"], timeout: .seconds(3)))
        #expect(!effective.yaml.contains("hunter2"))
        #expect(effective.yaml.contains("https://h.example/hidden"))
        #expect(
            effective.yaml.split(separator: "\n").contains { $0.contains("give_up_after: 1h") && $0.contains(":5") })
    }

    @Test("each setting shows its origin: file and line, the environment, another setting, or none")
    func places() throws {
        let main = """
            version: 1
            folders:
              - name: door
                path: /srv/door
                upload_to: [nas]
                settle:
                  quiet_for: 90s
                retry: {first: 2s}
            policy:
              retry:
                max: 5m
              concurrency: {total: 1}
            """
        let more = """
            destinations:
              nas: {type: tus, url: "https://nas.example/files", token: {env: NAS}, bandwidth: 1500 kB/s}
            folders:
              - {name: garden, path: "/srv/Größe #1", upload_to: [nas], include: ["*.mp4", a.mkv]}
            """
        let loaded = try read(main, more, environment: ["STATE_DIRECTORY": "/s/a:/s/b"])
        let effective = EffectiveConfiguration(loaded)
        func row(_ path: String) throws -> String {
            let row = try #require(effective.rows.first { $0.path == path }, "no \(path)")
            return "\(try #require(row.value).yaml) # \(row.from ?? "")"
        }
        #expect(try row("state") == "/s/a # $STATE_DIRECTORY")
        #expect(try row("staging.path") == "/s/a/staging # $STATE_DIRECTORY")
        #expect(try row("staging.keep_free") == "1 GB # default")
        #expect(try row("control.socket") == "/run/sluice/control.sock # default")
        #expect(try row("folders.door.settle.quiet_for") == "1m30s # a.yaml:7")
        #expect(try row("folders.door.settle.writers") == "lease # default")
        #expect(try row("folders.door.retry.first") == "2s # a.yaml:8")
        #expect(try row("folders.door.retry.max") == "5m # as policy.retry")
        #expect(try row("policy.retry.max") == "5m # a.yaml:11")
        #expect(try row("policy.concurrency.per_destination") == "1 # default")
        #expect(try row("destinations.nas.token") == "{env: NAS} # config.d/1.yaml:2")
        #expect(try row("destinations.nas.bandwidth") == "[1500 kB/s] # config.d/1.yaml:2")
        #expect(try row("folders.garden.path") == "\"/srv/Größe #1\" # config.d/1.yaml:4")
        #expect(try row("folders.garden.include") == "[\"*.mp4\", a.mkv] # config.d/1.yaml:4")
        let lines = effective.yaml.split(separator: "\n")
        #expect(lines.contains("  - name: door                                  # a.yaml:3"))
        #expect(lines.contains("    settle:"))
        #expect(lines.contains("      quiet_for: 1m30s                          # a.yaml:7"))
    }

    @Test("every key of a folder, destination and the policy is shown, even without a value")
    func complete() throws {
        let text = EffectiveConfiguration(try read(minimal)).yaml
        let named = text.split(separator: "\n").flatMap { line -> [String] in
            let words = line.drop { $0 == " " || $0 == "-" }
            if words.hasPrefix("# not set: ") { return words.dropFirst(11).split(separator: ", ").map(String.init) }
            return [String(words.prefix { $0 != ":" })]
        }
        let type = try #require(types.first { $0.name == "tus" })
        for section in [
            Section.root, .staging, .folder, .settle, .afterUpload, .destination, .policy, .retry, .control,
        ] {
            for key in section.keys { #expect(named.contains(key), "\(section.path).\(key)") }
        }
        for key in type.keys { #expect(named.contains(key.name)) }
    }

    @Test("the place of a secret is shown, and no secret")
    func secrets() throws {
        let canary = "Zq7canary"
        let loaded = try read(
            """
            version: 1
            folders: [{name: door, path: /srv/camera, upload_to: [nas, b]}]
            destinations:
              nas:
                type: tus
                url: "https://nas.example/files?token=\(canary)"
                token: {literal: "\(canary)"}
                headers: {X-Site: "\(canary)", X-Other: {file: /etc/sluice/other}}
              b:
                type: tus
                url: https://b.example/
                token: {command: [/usr/bin/fetch, --password=\(canary), -t, nas, --token, \(canary)]}
            policy: {busy: {command: [/usr/bin/ask, "token=\(canary)"]}}
            """)
        let effective = EffectiveConfiguration(loaded)
        #expect(!effective.yaml.contains(canary))
        #expect(!effective.rows.contains { "\($0)".contains(canary) })
        #expect(effective.yaml.contains("token: {literal: hidden}"))
        #expect(
            effective.yaml.contains("command: [/usr/bin/fetch, \"--password=***\", \"-t\", nas, \"--token\", \"***\"]"))
        #expect(effective.yaml.contains("X-Other: {file: /etc/sluice/other}"))
        #expect(effective.yaml.contains("# a.yaml:7; the secret itself is not shown\n"))
        #expect(try read(effective.yaml).settings.folders == loaded.settings.folders)
    }

    @Test(
        "text that YAML could read as another type, or that controls a terminal, is quoted",
        arguments: [
            ("a b", "\"a b\""), ("no", "\"no\""), ("null", "\"null\""), ("010", "\"010\""), ("a.b-c_d", "a.b-c_d"),
            ("/srv/a", "/srv/a"), ("{x}", "\"{x}\""), ("a\u{1B}", "\"a\\U0000001b\""), ("é", "\"é\""), ("", "\"\""),
            ("a: b", "\"a: b\""), ("\u{202E}", "\"\\U0000202e\""), ("*a", "\"*a\""), ("-", "\"-\""),
            ("a\"\\", "\"a\\\"\\\\\""),
        ])
    func texts(_ text: String, _ written: String) throws {
        #expect(scalar(text) == written)
    }
}
