internal import API
internal import Config
internal import Core
internal import Destinations

/// Checks whether the quotas of a configuration can ever leave enough for pieces that cannot be cut.
enum PieceChecks {
    /// Findings for destinations whose pieces are larger than one of their quotas, of `policy` or of a folder that
    /// uploads there.
    static func findings(
        _ settings: Settings, _ destinations: DestinationChecks, _ request: CheckRequest
    ) -> [CheckFinding] {
        var findings: [CheckFinding] = []
        for one in destinations.all where request.includes(destination: one.name) {
            guard let destination = try? one.destination.get(), destination.site != .here,
                let piece = destination.uncutPiece(ofSize: nil)
            else { continue }
            let folders = settings.folders.filter { $0.uploadTo.contains(one.name) }
            let quotas = QuotaState(
                policy: settings.policy.rules,
                destinations: settings.destinations.filter { $0.name == one.name }.map { ($0.name, $0.policy.rules) },
                folders: folders.map { ($0.watch.name, $0.policy.rules) })
            // One sentence for each quota, and not for each folder that it concerns.
            var lines: [QuotaState.Line] = []
            for folder in folders.map(\.watch.name) {
                // With every condition, since one of these quotas may be the one that counts tomorrow.
                let kind = QuotaState.Class(one.name, from: folder, Set(quotas.lines.compactMap(\.name)))
                lines += quotas.linesTooSmall(piece.cost, for: kind).filter { !lines.contains($0) }
            }
            findings += lines.map {
                CheckFinding(
                    about: "destination", name: one.name, CheckResult(.warning, $0.neverSentText(piece, to: one.name)))
            }
        }
        return findings
    }

    /// Findings for files that wait now.
    static func findings(
        _ waiting: [(folder: String, destination: String, files: Int, text: String)], _ request: CheckRequest
    ) -> [CheckFinding] {
        waiting.filter { request.includes(destination: $0.destination) || request.includes(folder: $0.folder) }.map {
            one in
            CheckFinding(
                about: "folder", name: one.folder,
                CheckResult(
                    .warning,
                    "\(one.files) \(one.files == 1 ? "file waits" : "files wait") for \(one.destination): \(one.text)"))
        }
    }
}
