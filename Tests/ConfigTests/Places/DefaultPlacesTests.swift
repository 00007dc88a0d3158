import Core
import Linux
import TestKit
import Testing

@testable import Config

@Suite("Default folders")
struct DefaultPlacesTests {
    private func places(
        _ file: FilePath, user: UInt32 = 4_000_000, _ environment: [String: String] = ["HOME": "/home/pi"]
    ) -> DefaultPlaces {
        DefaultPlaces(for: file, user: user) { environment[$0] }
    }

    @Test("the place of the configuration decides, and who reads it only outside of /etc/sluice")
    func files() {
        for user: UInt32 in [0, 4_000_000] {
            let usual = places("/etc/sluice/sluice.yaml", user: user)
            #expect(usual.state == "/var/lib/sluice" && usual.socket == "/run/sluice/control.sock")
            let instance = places("/etc/sluice/front.yaml", user: user)
            #expect(instance.state == "/var/lib/sluice-front" && instance.socket == "/run/sluice-front/control.sock")
        }
        for file: FilePath in ["/srv/sluice.yaml", "/etc/sluice/sub/sluice.yaml", "sluice.yaml"] {
            #expect(places(file, user: 0) == places("/etc/sluice/sluice.yaml", user: 0))
            // There is no /run/user/4000000.
            let own = places(file)
            #expect(own.state == "/home/pi/.local/state/sluice")
            #expect(own.socket == "/home/pi/.local/state/sluice/control.sock")
        }
        #expect(DefaultPlaces.isOfSystem("/etc/sluice/front.yaml") && !DefaultPlaces.isOfSystem("/etc/front.yaml"))
        // Not a path of another folder, whatever the name is.
        #expect(places("/etc/sluice/..yaml").state == "/var/lib/sluice-.")
        #expect(places("/etc/sluice/../front.yaml").state == "/home/pi/.local/state/sluice")
    }

    @Test("XDG variables name a user's folders, unless they are relative")
    func variables() {
        let variables = [
            "HOME": "/home/pi", "XDG_STATE_HOME": "/x/state", "XDG_RUNTIME_DIR": "/x/run",
            "XDG_CONFIG_HOME": "/x/config",
        ]
        let named = places("/srv/s.yaml", variables)
        #expect(named.state == "/x/state/sluice" && named.socket == "/x/run/sluice/control.sock")
        #expect(
            named.origins == [
                "state": "$XDG_STATE_HOME", "staging.path": "$XDG_STATE_HOME", "control.socket": "$XDG_RUNTIME_DIR",
            ])
        let relative = places("/srv/s.yaml", ["HOME": "/home/pi", "XDG_STATE_HOME": "x", "XDG_RUNTIME_DIR": "y"])
        #expect(relative == places("/srv/s.yaml"))
        // Those of root may be left over from another user.
        #expect(places("/srv/s.yaml", user: 0, variables) == places("/srv/s.yaml", user: 0, [:]))
    }

    @Test("a runtime folder of another user, which `su` leaves in the environment, is ignored")
    func foreign() {
        // No user has the number of this test.
        let kept = places("/srv/s.yaml", ["HOME": "/home/pi", "XDG_RUNTIME_DIR": "/usr"])
        #expect(kept == places("/srv/s.yaml"))
        let own = places("/srv/s.yaml", user: UserDatabase.owner(of: "/usr") ?? 0, ["XDG_RUNTIME_DIR": "/usr"])
        #expect(own.origins["control.socket"] == nil)
    }

    @Test("a user without a home has the system's folders", arguments: [nil, "/", "", "relative"])
    func homeless(_ home: String?) {
        #expect(places("/srv/s.yaml", ["HOME": home].compactMapValues { $0 }) == places("/srv/s.yaml", user: 0))
    }

    @Test("the folders that systemd made go first")
    func systemd() {
        let made = places(
            "/etc/sluice/front.yaml", ["HOME": "/", "STATE_DIRECTORY": "/s/a:/s/b", "RUNTIME_DIRECTORY": "/run/x"])
        #expect(made.state == "/s/a" && made.socket == "/run/x/control.sock")
        #expect(made.origins["staging.path"] == "$STATE_DIRECTORY")
        #expect(made.origins["control.socket"] == "$RUNTIME_DIRECTORY")
    }

    @Test("a command without a file reads the user's own if there is one, and root never does")
    func configuration() throws {
        let folder = TemporaryFolder()
        let environment = { @Sendable (name: String) in name == "XDG_CONFIG_HOME" ? folder.path.display : nil }
        let own = folder.path.appending("sluice/sluice.yaml")
        let system: FilePath = "/etc/sluice/sluice.yaml"
        if try FileStatus.ifPresent(at: system) == nil {
            #expect(DefaultPlaces.configuration(user: 4_000_000, environment: environment) == own)
        }
        try folder.write("sluice/sluice.yaml", Array("version: 1".utf8))
        #expect(DefaultPlaces.configuration(user: 4_000_000, environment: environment) == own)
        #expect(DefaultPlaces.configuration(user: 0, environment: environment) == system)
        #expect(DefaultPlaces.configuration(user: 4_000_000, environment: { _ in nil }) == system)
    }
}
