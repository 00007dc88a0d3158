internal import Core

extension FolderSettings {
    /// Replaces a folder for bytes that a client hands over and that never were in a folder. It is not watched, and no
    /// configuration can name it: `-` is no valid folder name.
    package static let received: FolderSettings = FolderSettings(
        // No file is ever there: it only names the source of such bytes.
        watch: WatchRule(name: receivedName, path: "/dev/stdin"), routes: [], afterUpload: .delete, empty: .upload,
        name: Template.builtIn("{name}"))

    static let receivedName = "-"

    package var isReceived: Bool { watch.name == Self.receivedName }
}

extension Template {
    /// Makes a template that is part of the program.
    static func builtIn(_ source: String) -> Template {
        do throws(Template.SyntaxError) { return try Template(source) } catch {
            preconditionFailure("a built-in template is valid: \(error.problem)")
        }
    }
}
