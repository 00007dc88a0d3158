internal import Core
internal import Destinations
internal import Digests
internal import Linux

/// Replaces names of files, and of folders below the watched ones, by marks. A file has one mark in a report, whether its
/// path, its path below the watched folder or its name is replaced, and another mark in the next report: a short digest
/// of a short name would be found by trying.
struct HiddenNames {
    /// The watched folders: whatever stands below one of them is a name.
    var roots: [String] = []
    /// Paths and addresses that the configuration names. They stay.
    var kept: Set<String> = []
    /// Words of the report in lower case. A name that is one of them is replaced only where it must be a name.
    var words = Self.wordsOfHelp
    /// Paths, paths below a watched folder, and names, as they are displayed.
    private(set) var texts: Set<String> = []
    private let salt = Random.bytes(16)

    /// Adds a path or a name. Of a relative path, and of one below a watched folder, the names of folders are hidden too.
    mutating func add(_ text: String, relative: String? = nil) {
        texts.insert(Self.canonical(text))
        if let relative { texts.insert(Self.canonical(relative)) }
    }

    /// The same text for a name and its percent-coded form, which are not distinguished.
    static func canonical(_ text: String) -> String { FilePath(bytes: DecodedText(text).bytes).display }

    mutating func formUnion(_ others: HiddenNames) { texts.formUnion(others.texts) }

    /// Learns the words, paths and addresses of the configuration.
    mutating func keep(_ lines: [String]) {
        for line in lines {
            for token in line.split(whereSeparator: { " \"',{}[]`".contains($0) }) {
                words.insert(token.lowercased())
                if token.contains("/"), token.utf8.count > 2 { kept.insert(Self.withoutSlash(token)) }
            }
            words.formUnion(Self.words(of: line))
        }
    }

    /// Adds the paths in a log that show where they end: files that no list has any more.
    mutating func discover(in lines: [String]) {
        let search = NameSearch(self)
        for line in lines { texts.formUnion(search.certainPaths(in: line)) }
    }

    func hide(in lines: [String]) -> [String] { NameSearch(self).hide(in: lines) }

    // MARK: Marks

    /// - Parameter number: Distinguishes files of one name; 0 where there is one.
    func mark(_ name: String, number: Int = 0) -> String {
        let digest = hexadecimal(Hasher.digest(.sha256, of: salt + Array(name.utf8)).prefix(4))
        let start = "name-\(digest)" + (number > 0 ? "-\(number)" : "")
        let last = name.split(separator: "/").last ?? ""
        let parts = last.split(separator: ".", omittingEmptySubsequences: false)
        // Another ending may be a word of the name, as in `Dr.Anna`.
        guard parts.count > 1, let ending = parts.last, Self.endings.contains(ending.lowercased()) else { return start }
        return "\(start).\(ending)"
    }

    private static let endings: Set<String> = Set(
        """
        3gp 7z aac arw avi avif braw bz2 cr2 cr3 csv dat dng flac gif gz heic heif insv jpeg jpg json lrv m2ts m4a m4v \
        md md5 mkv mov mp3 mp4 mpeg mpg mts mxf nef ogg part pdf png r3d raw sha1 sha256 srt tar thm tif tiff tmp ts txt \
        wav webm webp wmv xml xmp xz yaml zip zst
        """.split(separator: " ").map(String.init))

    // MARK: Forms

    /// A name as programs repeat it: with `+` for a space, as a form of an address has it, and with U+FFFD for bytes
    /// that are not UTF-8, for each of them or for several.
    static func forms(of text: String) -> Set<String> {
        var forms: Set<String> = [text]
        let bytes = DecodedText(text).bytes
        if String(validating: bytes, as: UTF8.self) == nil {
            forms.insert(String(decoding: bytes, as: UTF8.self))
            forms.insert(
                Set(bytes.filter { $0 >= 0x80 }).reduce(text) {
                    $0.replacing("\\x" + hexadecimal([$1]), with: "\u{FFFD}")
                })
        }
        return forms.union(forms.map { $0.replacing(" ", with: "+") })
    }

    /// A name in base 64, also as addresses have it. A short one might be found by chance.
    static func codedForms(of text: String) -> Set<String> {
        let bytes = DecodedText(text).bytes
        guard bytes.count >= 6 else { return [] }
        let plain = base64(bytes)
        let ofAddress = plain.replacing("+", with: "-").replacing("/", with: "_")
        return Set([plain, ofAddress].flatMap { [$0, $0.replacing("=", with: "")] })
    }

    /// The long parts of a name with control characters: a text may be cut at a line feed.
    static func parts(of text: String) -> [String] {
        let bytes = DecodedText(text).bytes
        let parts = bytes.split { $0 < 0x20 || $0 == 0x7F }
        return parts.filter { $0.count >= 8 && $0.count < bytes.count }.map { FilePath(bytes: $0).display }
    }

    // MARK: Words

    static func words(of text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }

    /// The vocabulary of the program, from its own manual.
    private static let wordsOfHelp: Set<String> = {
        let more = """
            accepted address answer attempt backoff bucket cannot closed connection created denied device directory \
            disk does error errno failed finished free given held invalid listed log message missing name network none \
            nothing open operation opening part parts permission priority progress received refused remote request \
            resource retry root route secret sent server since source staged started state status stopped such systemd \
            timed token transfer unknown upload uploaded uploads usage user verified waiting warning working
            """
        // Without the examples, which have names of files and folders.
        let help = Shell.verbs.flatMap { verb in
            [verb.name, verb.sentence] + verb.details + verb.options.flatMap { [$0.written, $0.explanation] }
        }
        let types = DestinationTable.builtIn.map(\.type.name)
        return Set((help + types + [more]).flatMap { words(of: $0) } + types)
    }()

    static func withoutSlash(_ path: some StringProtocol) -> String {
        path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : String(path)
    }
}
