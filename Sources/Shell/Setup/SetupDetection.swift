internal import Core
internal import Daemon
internal import Linux

/// What `sluice init` finds on a machine before it asks.
struct SetupDetection: Sendable {
    /// Tests use a folder of their own.
    var root: FilePath = "/"
    var home: FilePath?

    private static let words = ["dcim", "cam", "video", "record", "clip", "movie", "nvr"]
    private static let most = 8

    /// Existing folders that cameras and cards use, the likeliest first: those with a telling name.
    func folders() -> [FilePath] {
        var found = children("srv") + children("mnt")
        let labels = children("media") + children("run/media")
        // A desktop mounts cards below the name of the user.
        for folder in labels.flatMap({ [$0] + names(in: $0) }) {
            let pictures = folder.appending("DCIM")
            if isFolder(pictures) { found.append(pictures) }
        }
        if let home { found += names(in: home).filter(isTelling) }
        return Array((found.filter(isTelling) + found.filter { !isTelling($0) }).prefix(Self.most))
    }

    private func children(_ name: String) -> [FilePath] { names(in: root.appending(FilePath(name))) }

    private func names(in folder: FilePath) -> [FilePath] {
        // Folders that are missing or closed to this user have nothing to offer.
        let names = (try? Files.names(in: folder)) ?? []
        return names.sorted().map { folder.appending($0) }.filter {
            !$0.name.bytes.starts(with: [0x2E]) && isFolder($0)
        }
    }

    private func isFolder(_ path: FilePath) -> Bool { (try? FileStatus(at: path))?.isDirectory ?? false }

    private func isTelling(_ path: FilePath) -> Bool {
        let name = path.name.lossyText.lowercased()
        return Self.words.contains { name.contains($0) }
    }

    /// Whether systemd runs this machine (sd_booted(3)).
    var hasSystemd: Bool { isFolder(root.appending("run/systemd/system")) }

    /// The name of the time zone that localtime(5) sets; `nil` where the link names none.
    var zone: String? {
        guard let target = Files.linkTarget(root.appending("etc/localtime"))?.lossyText,
            let range = target.ranges(of: "zoneinfo/").last
        else { return nil }
        return String(target[range.upperBound...])
    }

    /// One sentence about the programs that know what a network costs.
    static func network() async -> String {
        // Without a bus no program answers, and rules decide.
        guard let report = try? await StandaloneNetworkReport.managers(), report.networkManager.isRunning else {
            return "NetworkManager does not run: a metered network is recognised only by its kind, or by a rule under "
                + "policy.networks"
        }
        return "NetworkManager runs: it says which networks are metered"
    }
}
