import Core
import Linux
import TestKit
import Testing

@testable import Shell

@Suite("systemd-paths")
struct SystemdPathsTests {
    private func config(_ folder: TemporaryFolder, _ path: String) throws -> FilePath {
        try folder.write(
            "s.yaml",
            Array(
                """
                version: 1
                folders:
                  - {name: cam, path: "\(path)", upload_to: [nas], after_upload: {source: delete}}
                destinations:
                  nas: {type: directory, path: /mnt/nas}
                """.utf8))
    }

    @Test("the drop-in has every path with its reason, and nothing of the user who asks for it")
    func printed() async throws {
        let folder = TemporaryFolder()
        let file = try config(folder, "/srv/sluice test")
        let screen = Screen()
        let status = await Shell.run(
            ["systemd-paths", "--config", file], console: screen.console(environment: ["HOME": "/home/pi"]),
            signals: nil)
        #expect(status == .ok)
        let text = screen.output
        #expect(text.hasPrefix("# Made by `sluice systemd-paths` from \(file.display)."))
        #expect(text.contains("[Service]\n# destination nas\nReadWritePaths=-/mnt/nas\n"))
        #expect(text.contains("# folder cam: sources are deleted\nReadWritePaths=\"-/srv/sluice test\"\n"))
        #expect(!text.contains("/home/pi"))
    }

    @Test("a folder of the system ends with status 78")
    func refused() async throws {
        let folder = TemporaryFolder()
        let screen = Screen()
        let status = await Shell.run(
            ["systemd-paths", "--config", try config(folder, "/etc")], console: screen.console(), signals: nil)
        #expect(status == .config)
        #expect(screen.errors.contains("must not write to all of /etc"))
    }

    @Test("the drop-in is installed under the unit's name, readable for all, and replaced as a whole")
    func installed() throws {
        let units = TemporaryFolder()
        let (first, second) = ("# Made by `sluice systemd-paths` from a", "# Made by `sluice systemd-paths` from b")
        let place = try SystemdDropIn.install(first, for: "sluice.service", in: units.path)
        #expect(place == units.path.appending("sluice.service.d/paths.conf"))
        #expect(try FileStatus(at: place).mode & 0o777 == 0o644)
        #expect(try FileStatus(at: place.parent).mode & 0o777 == 0o755)
        _ = try SystemdDropIn.install(second, for: "sluice.service", in: units.path)
        #expect(try Files.read(place) == Array(second.utf8))
        #expect(try Files.names(in: place.parent) == ["paths.conf"])
    }

    @Test("a drop-in that a person has written is not replaced, and the message names the way out")
    func foreign() throws {
        let units = TemporaryFolder()
        let place: FilePath = "sluice.service.d/paths.conf"
        let own = Array("[Service]\nLoadCredential=nas.token:/etc/sluice/nas.token\n".utf8)
        try Files.makeFolders(units.path.appending(place.parent), mode: 0o755)
        try units.write(place, own)
        #expect {
            try SystemdDropIn.install("# Made by", for: "sluice.service", in: units.path)
        } throws: { error in
            (error as? CommandError)?.status == .conflict && "\(error)".contains("override.conf")
        }
        #expect(try Files.read(units.path.appending(place)) == own)
    }
}
