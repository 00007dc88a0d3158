internal import Core

extension FolderSettings {
    /// In the place of a folder, for bytes that somebody hands over and that never stood in one. Nobody watches it, and no
    /// configuration names it: `-` is no name for a folder.
    package static let received: FolderSettings = FolderSettings(
        // Nothing is ever there: this is where such bytes come from.
        watch: WatchRule(name: receivedName, path: "/dev/stdin"), uploadTo: [], afterUpload: .delete, empty: .upload,
        duplicates: .upload, priority: 0, name: Template.builtIn("{name}"), metadata: [:], context: [:],
        policy: PolicyOverrides())

    static let receivedName = "-"

    package var isReceived: Bool { watch.name == Self.receivedName }
}

extension Template {
    /// One that the program brings along.
    static func builtIn(_ source: String) -> Template {
        do throws(Mistake) { return try Template(source) } catch {
            preconditionFailure("a built-in template is valid: \(error.problem)")
        }
    }
}
