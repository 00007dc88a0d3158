internal import Core
internal import Linux

/// A report as one file: HTML without anything from elsewhere, or Markdown.
struct ReportDocument {
    struct Section {
        var title: String
        var lines: [String]
        /// Whether it shows only what the configuration says.
        var isOfConfiguration = false
        /// Whether only Sluice wrote it: then `token: …` is a key and what is wrong about it, and no secret follows.
        var isOwnText = false
    }

    var title: String
    var at: WallTime
    var sections: [Section] = []
    /// Values that are hidden wherever they appear.
    let secrets: KnownSecrets

    init(title: String, at: WallTime, hiding secrets: KnownSecrets = KnownSecrets()) {
        self.secrets = secrets
        self.title = title
        self.at = at
    }

    /// The last step for every line: whatever its source is, no secret of the configuration and nothing that looks like
    /// one remains, and no control character.
    private func lines(of section: Section) -> [String] {
        // Together: a private key has several lines.
        let text = section.lines.map { printable(withoutStyles($0)) }.joined(separator: "\n")
        return redacted(secrets.cover(text), headers: !section.isOwnText).split(
            separator: "\n", omittingEmptySubsequences: false
        ).map(String.init)
    }

    private var heading: String { "\(title), \(LocalTime(at).date) \(LocalTime(at).clock)" }

    // MARK: Forms

    var markdown: String {
        var text = "# \(heading)\n"
        for section in sections {
            let lines = lines(of: section)
            // A fence is longer than any in the text, which may be indented.
            let longest = lines.flatMap { $0.split { $0 != "`" } }.map(\.count).max() ?? 0
            let fence = String(repeating: "`", count: max(3, longest + 1))
            text += "\n## \(section.title)\n\n\(fence)\n" + lines.map { $0 + "\n" }.joined() + fence + "\n"
        }
        return text
    }

    var html: String {
        let policy = "default-src 'none'; style-src 'unsafe-inline'"
        var text = """
            <!DOCTYPE html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <meta http-equiv="Content-Security-Policy" content="\(policy)">
            <title>\(Self.escaped(heading))</title>
            <style>
            :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
            body { margin: 0 auto; max-width: 72rem; padding: 1rem }
            nav li { display: inline-block; margin-inline-end: 1rem }
            nav ul { padding: 0 }
            pre { border: 1px solid; border-radius: 4px; font: 13px/1.5 ui-monospace, monospace; overflow-x: auto; padding: .75rem }
            </style>
            <h1>\(Self.escaped(heading))</h1>
            <nav aria-label="Parts"><ul>

            """
        for (number, section) in sections.enumerated() {
            text += "<li><a href=\"#part-\(number)\">\(Self.escaped(section.title))</a></li>\n"
        }
        text += "</ul></nav>\n<main>\n"
        for (number, section) in sections.enumerated() {
            text += "<section>\n<h2 id=\"part-\(number)\">\(Self.escaped(section.title))</h2>\n"
            text +=
                "<pre tabindex=\"0\">" + lines(of: section).map { Self.escaped($0) + "\n" }.joined()
                + "</pre>\n</section>\n"
        }
        return text + "</main>\n</html>\n"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    // MARK: Names

    /// The names of files are replaced wherever they appear, but in the configuration, which has none.
    mutating func hide(_ names: HiddenNames) {
        var names = names
        names.keep(sections.filter(\.isOfConfiguration).flatMap(\.lines))
        names.discover(in: sections.filter { !$0.isOfConfiguration }.flatMap(\.lines))
        let search = NameSearch(names)
        for index in sections.indices where !sections[index].isOfConfiguration {
            sections[index].lines = search.hide(in: sections[index].lines)
        }
    }
}
