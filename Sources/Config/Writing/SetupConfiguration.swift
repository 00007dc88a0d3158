package import Core

/// The first configuration of a box: one folder and one destination, with comments for the person who changes it later.
package struct SetupConfiguration: Sendable {
    package var folder: FilePath
    /// An address, or an absolute path.
    package var target: String
    /// The file with the token; `nil` for none.
    package var token: FilePath?
    package var after: SetupAnswers.SourceChoice
    /// `pause` or `allow`; `nil` for the default.
    package var metered: String?
    /// A window; `nil` for always.
    package var hours: String?

    package init(folder: FilePath, target: String, token: FilePath?, answers: SetupAnswers) {
        self.folder = folder
        self.target = target
        self.token = token
        after = answers.after
        metered = answers[.metered]
        hours = answers[.hours]
    }

    /// The folder's own name, in the letters that a name may have.
    package var folderName: String { Self.name(folder.name.text ?? "", else: "folder") }

    /// The first label of the host, or the last name of the path.
    package var destinationName: String {
        if target.hasPrefix("/") { return Self.name(FilePath(target).normalised.name.text ?? "", else: "target") }
        let authority = target.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first ?? ""
        let host = authority.prefix { $0 != ":" }
        let isAddress = host.hasPrefix("[") || host.allSatisfy { $0.isNumber || $0 == "." }
        return isAddress ? "server" : Self.name(String(host.prefix { $0 != "." }), else: "server")
    }

    private static func name(_ text: String, else other: String) -> String {
        let bytes = text.utf8.map { isNameByte($0) ? $0 : UInt8(ascii: "-") }.prefix(64)
        let name = String(decoding: bytes, as: UTF8.self)
        return name.contains { $0.isLetter || $0.isNumber } && yaml11Meaning(name) == nil ? name : other
    }

    /// The file's whole text.
    package var yaml: String {
        var lines = [
            "# yaml-language-server: $schema=/usr/share/sluice/sluice.schema.json",
            "#",
            "# Written by `sluice init`. Change it with `sluice edit`, which checks it and reloads the daemon.",
            "# `sluice config` prints every setting with its default.",
            "version: 1",
        ]
        lines += [
            "", "folders:",
            "  - name: \(folderName)        # the name in lists and logs",
            "    path: \(written(folder))        # folders below it are watched too",
            "    upload_to: [\(destinationName)]",
        ]
        switch after {
        case .keep: lines.append("    after_upload: {source: keep}        # sources stay; or `delete`, or `move`")
        case .delete: lines.append("    after_upload: {source: delete}        # once the upload is verified")
        case .move(let target):
            lines.append("    after_upload: {source: move, to: \(scalar(target))}        # once the upload is verified")
        }
        lines += ["", "destinations:", "  \(destinationName):"]
        if target.hasPrefix("/") {
            lines += ["    type: directory", "    path: \(written(FilePath(target).normalised))"]
        } else {
            lines += ["    type: tus", "    url: \(scalar(target))"]
            if let token { lines.append("    token: {file: \(written(token))}        # the secret is in that file") }
        }
        if metered != nil || hours != nil {
            lines += ["", "policy:"]
            if let metered { lines.append("  metered: \(metered)        # what metered networks are used for") }
            if let hours { lines.append("  windows: [\(scalar(hours))]        # nothing is sent at other times") }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func written(_ path: FilePath) -> String { path.inFile.yaml }
}
