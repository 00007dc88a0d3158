package import Core

/// The first configuration of a box: one folder and one destination, with comments for the person who changes it later.
package struct SetupConfiguration: Sendable {
    package var folder: FilePath
    package var target: SetupTarget
    /// The file with the secret; `nil` for none.
    package private(set) var secret: FilePath?
    package var after: SetupAnswers.SourceChoice
    /// `pause` or `allow`; `nil` for the default.
    package var metered: String?
    /// A window; `nil` for always.
    package var hours: String?

    /// - Parameter secrets: The folder for the file with the secret; `nil` for no secret.
    package init(folder: FilePath, target: SetupTarget, secrets: FilePath?, answers: SetupAnswers) {
        self.folder = folder
        self.target = target
        secret = secrets.map { $0.appending(FilePath(target.name + target.secretEnding)) }
        after = answers.after
        metered = answers[.metered]
        hours = answers[.hours]
    }

    /// The folder's own name, in the letters that a name may have.
    package var folderName: String { SetupTarget.name(folder.name.text ?? "", else: "folder") }

    package var destinationName: String { target.name }

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
        lines += target.lines(secret: secret).map { "    " + $0 }
        if metered != nil || hours != nil {
            lines += ["", "policy:"]
            if let metered { lines.append("  metered: \(metered)        # what metered networks are used for") }
            if let hours { lines.append("  windows: [\(scalar(hours))]        # nothing is sent at other times") }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func written(_ path: FilePath) -> String { path.inFile.yaml }
}
