internal import Config
internal import Core
internal import Linux
internal import Staging

/// Fills the templates of a folder's settings with the facts of one file.
struct RemoteNaming: Sendable {
    let folder: String
    let relative: FilePath
    let size: Int64
    /// ns since 1970.
    let modified: Int64
    var sha256: [UInt8]?
    var id: String?
    /// The metadata of the recording, where it was read.
    var facts = MediaFacts()

    init(folder: String, relative: FilePath, size: Int64, modified: Int64, sha256: [UInt8]? = nil, id: String? = nil) {
        self.folder = folder
        self.relative = relative
        self.size = size
        self.modified = modified
        self.sha256 = sha256
        self.id = id
    }

    /// The bytes that `template` produces. An empty value leaves its place empty.
    func fill(_ template: Template) -> [UInt8] {
        let time = LocalTime(WallTime(milliseconds: modified / 1_000_000))
        return template.filled { name, format in
            switch name {
            case "folder": Array(folder.utf8)
            case "relative": relative.bytes
            case "name": relative.name.bytes
            case "stem": relative.stem.bytes
            case "ext": relative.fileExtension?.bytes ?? []
            case "dir": relative.parent.bytes
            case "id": Array((id ?? "").utf8)
            case "size": Array(String(size).utf8)
            case "sha256": Array(hexadecimal(sha256 ?? []).utf8)
            case "year": Array(padded(time.year, 4).utf8)
            case "month": Array(padded(time.month, 2).utf8)
            case "day": Array(padded(time.day, 2).utf8)
            case "hour": Array(padded(time.hour, 2).utf8)
            case "minute": Array(padded(time.minute, 2).utf8)
            case "second": Array(padded(time.second, 2).utf8)
            case "modified": Array(time.formatted(format ?? Self.momentFormat).utf8)
            case _ where Template.mediaFacts.contains(name): fact(name, format)
            // `Template` refuses every other word when it is read.
            default: []
            }
        }
    }

    private static let momentFormat = "%Y-%m-%dT%H:%M:%S"

    /// A fact of the recording, safe for a part of a path. Without a value the place is empty; for the time, the file's
    /// own is used.
    private func fact(_ name: String, _ format: String?) -> [UInt8] {
        let text: String? =
            switch name {
            case "recorded":
                LocalTime(facts.recorded ?? WallTime(milliseconds: modified / 1_000_000)).formatted(
                    format ?? Self.momentFormat)
            case "duration": facts.durationText
            case "width": facts.width.map { "\($0)" }
            case "height": facts.height.map { "\($0)" }
            // Text from outside: it must not create a folder, lead upwards or hide the file.
            case "camera": facts.camera.map { String($0.replacing("/", with: "_").drop { $0 == "." }) }
            // A placeholder of the list that this switch lacks: an empty text.
            default: nil
            }
        return Array((text ?? "").utf8)
    }

    /// A move's target with the recording's facts filled in, which are not read again.
    func settled(_ action: SourceAction) -> SourceAction {
        if case .move(let template) = action { .move(to: template.fillingMediaFacts(fact)) } else { action }
    }

    /// A template's result as text; bytes that are not text are shown escaped.
    func text(_ template: Template) -> String {
        FilePath(bytes: fill(template)).text ?? FilePath(bytes: fill(template)).display
    }

    /// The remote name: relative, without `.`, `..` and empty parts, regardless of the template and the file's name.
    func remoteName(_ template: Template) -> FilePath {
        let parts = FilePath(bytes: fill(template)).components.filter { $0 != "." && $0 != ".." }
        let joined = parts.reduce(FilePath("")) { $0.appending($1) }
        return joined.isEmpty ? relative.name : joined
    }

    /// The target of a move: absolute; `..` that comes from a file's name has no effect.
    func target(_ template: Template) -> MoveTarget {
        let path = FilePath(bytes: fill(template)).normalised
        let base = template.fixedFolder
        // A value that would lead outside the template's directory is left out.
        guard let relative = path.relative(to: base) else { return MoveTarget(base: path.parent, relative: path.name) }
        return MoveTarget(base: base, relative: relative)
    }
}
