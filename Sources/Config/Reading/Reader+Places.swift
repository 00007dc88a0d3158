internal import Core

// Readers for paths, globs, addresses and templates.

extension Reader where Value == FilePath {
    /// An absolute path, normalised.
    static var path: Reader {
        let expected = "an absolute path"
        return Reader(expected: expected, kind: .path) { text throws(ValueError) in
            try refuseControls(in: text)
            guard text.hasPrefix("/") else {
                throw ValueError(
                    "takes \(expected), not \(quoted(text))"
                        + (text.hasPrefix("~") || text.hasPrefix("$")
                            ? "; `~` and variables are not expanded, write the full path" : "; begin it with `/`"))
            }
            let path = FilePath(text)
            guard !path.components.contains("..") else {
                throw ValueError(
                    "has `..` in it, which means something else after a symbolic link; write the full path")
            }
            // PATH_MAX of limits.h, including its NUL; and names of NAME_MAX bytes.
            guard path.bytes.count < 4096, path.components.allSatisfy({ $0.bytes.count <= 255 }) else {
                throw ValueError("is longer than Linux allows (4095 bytes, 255 for each part)")
            }
            return path.normalised
        }
    }
}

extension Reader where Value == FilePath {
    /// A path below some folder.
    static var pathBelow: Reader {
        let expected = "a name or a path below the folder, like `.sluice-here`"
        return Reader(expected: expected, isText: true, kind: .pathBelow) { text throws(ValueError) in
            try refuseControls(in: text)
            let path = FilePath(text)
            guard !path.isEmpty, !path.isAbsolute, !path.components.contains(".."), !path.components.contains(".")
            else {
                throw .plain
            }
            guard path.components.allSatisfy({ $0.bytes.count <= 255 }) else {
                throw ValueError("has a part that is longer than Linux allows (255 bytes)")
            }
            return FilePath(bytes: path.components.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
        }
    }
}

extension Reader where Value == MarkerName {
    static var markerName: Reader {
        let expected = "a name with `{name}` or `{stem}` in it, like `\"{name}.done\"`"
        return Reader(expected: expected, isText: true, kind: .marker) { text throws(ValueError) in
            try refuseControls(in: text)
            guard let marker = MarkerName(text) else { throw .plain }
            return marker
        }
    }
}

extension Reader where Value == String {
    /// The ending of a file's name without its dot, in lower case.
    static var ending: Reader {
        let expected = "an ending of 1 to 16 letters and digits, like `xml`"
        return Reader(expected: expected, isText: true, kind: .ending) { text throws(ValueError) in
            let ending = text.hasPrefix(".") ? text.dropFirst() : text[...]
            guard (1...16).contains(ending.utf8.count), ending.utf8.allSatisfy(isNameByte), !ending.contains(".") else {
                throw .plain
            }
            return ending.lowercased()
        }
    }

    /// A pattern in the syntax of ``Glob``.
    static var glob: Reader {
        let expected = "a pattern like `*.mp4` or `front/*.jpg`"
        return Reader(expected: expected, isText: true, kind: .pattern) { text throws(ValueError) in
            guard !text.isEmpty else { throw ValueError("is empty; it takes \(expected)") }
            try refuseControls(in: text)
            guard !text.hasPrefix("/") else {
                throw ValueError("begins with `/`; patterns match the name, or the path below the folder")
            }
            guard !text.hasPrefix("!") else {
                throw ValueError("begins with `!`; put unwanted files under `exclude`")
            }
            for (offset, scalar) in text.unicodeScalars.enumerated() where scalar == "{" {
                throw ValueError("has braces, which are not expanded; write one pattern for each form", offset: offset)
            }
            try refuseOpenBracket(in: text)
            try refuseBackwardRange(in: text)
            return text
        }
    }

    private static func refuseOpenBracket(in text: String) throws(ValueError) {
        var opened: Int?
        var isEscaped = false
        for (offset, scalar) in text.unicodeScalars.enumerated() {
            defer { isEscaped = scalar == "\\" && !isEscaped }
            if isEscaped { continue }
            if scalar == "[", opened == nil { opened = offset }
            // A `]` right after the `[` or its `!` represents itself.
            if scalar == "]", let start = opened, offset > start + 1 { opened = nil }
        }
        if let opened {
            throw ValueError("has a `[` without its `]`; write `\\[` for the bracket itself", offset: opened)
        }
        guard !isEscaped else { throw ValueError("ends with a backslash, which escapes nothing") }
    }

    /// Called for text whose brackets are closed.
    private static func refuseBackwardRange(in text: String) throws(ValueError) {
        let scalars = Array(text.unicodeScalars)
        var opened: Int?
        var at = 0
        while at < scalars.count {
            defer { at += 1 }
            guard let start = opened else {
                if scalars[at] == "\\" { at += 1 } else if scalars[at] == "[" { opened = at }
                continue
            }
            if scalars[at] == "]", at > start + 1 { opened = nil }
            guard at > start + 1, scalars[at] == "-", at + 1 < scalars.count, scalars[at + 1] != "]",
                scalars[at - 1] > scalars[at + 1]
            else { continue }
            throw ValueError(
                "has a range that runs backwards: write `\(scalars[at + 1])-\(scalars[at - 1])`", offset: at - 1)
        }
    }

    /// The address of a server. It must not contain user and password, since it is shown in lists and logs.
    static var url: Reader {
        let expected = "an address like `https://nas.example/files`"
        return Reader(expected: expected, kind: .url) { text throws(ValueError) in
            _ = try checkAddress(text, expected)
            return text
        }
    }

    /// The name or address of a machine, in lower case and without a dot at its end.
    static var host: Reader {
        let expected = "a host like `nas.example`, or an address like `192.0.2.7`, without scheme and port"
        return Reader(expected: expected, isText: true, kind: .host) { text throws(ValueError) in
            if let address = IPAddress(text) { return "\(address)" }
            let name = (text.last == "." ? String(text.dropLast()) : text).lowercased()
            let labels = name.split(separator: ".", omittingEmptySubsequences: false)
            let isName = name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || "-_.".utf8.contains(byte)
            }
            guard isName, (1...253).contains(name.utf8.count), labels.allSatisfy({ (1...63).contains($0.utf8.count) })
            else { throw .plain }
            return name
        }
    }

    /// Scheme, host and port of a server, with nothing after them.
    static var origin: Reader {
        let expected = "an origin like `https://uploads.example.com` or `https://uploads.example.com:8443`"
        return Reader(expected: expected, kind: .origin) { text throws(ValueError) in
            guard !text.contains("*") else {
                throw ValueError("has a `*`, but wildcards are not supported here; write each origin")
            }
            let count = try checkAddress(text, expected)
            guard text.utf8.count == count else {
                throw ValueError(
                    "has something after its host, where an origin ends; write `\(text.prefix(count))`", offset: count)
            }
            return text
        }
    }

    /// - Returns: The number of characters of scheme, host and port.
    private static func checkAddress(_ text: String, _ expected: String) throws(ValueError) -> Int {
        guard text.unicodeScalars.allSatisfy({ (0x21...0x7E).contains($0.value) }) else {
            throw ValueError(
                "has a space or a character that is not ASCII; encode it as `%XX`, a host as punycode",
                repeatsValue: false)
        }
        guard let scheme = ["http://", "https://"].first(where: { text.lowercased().hasPrefix($0) }) else {
            throw ValueError(
                "takes \(expected); it begins with neither `https://` nor `http://`", repeatsValue: false)
        }
        let rest = text.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        guard !authority.contains("@") else {
            throw ValueError(
                "has a user or password in it; give them as a secret of their own", repeatsValue: false)
        }
        guard !text.contains("#") else {
            throw ValueError("has a `#`, which is never sent to a server", repeatsValue: false)
        }
        try checkHost(authority, after: scheme.count)
        return scheme.count + authority.count
    }

    private static func checkHost(_ authority: Substring, after offset: Int) throws(ValueError) {
        var host = authority
        var port: Substring?
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]") else {
                throw ValueError("has a `[` without its `]`", offset: offset)
            }
            host = authority[authority.index(after: authority.startIndex)..<close]
            let behind = authority[authority.index(after: close)...]
            guard behind.isEmpty || behind.hasPrefix(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." })
            else { throw ValueError("has no valid host", offset: offset) }
            port = behind.isEmpty ? nil : behind.dropFirst()
        } else if let colon = authority.firstIndex(of: ":") {
            host = authority[..<colon]
            port = authority[authority.index(after: colon)...]
        }
        let isName = host.allSatisfy { $0.isLetter || $0.isNumber || "-._:".contains($0) }
        guard !host.isEmpty, isName else { throw ValueError("has no valid host", offset: offset) }
        if let port {
            guard let number = Int(port), (1...65_535).contains(number) else {
                throw ValueError("has no valid port; ports go from 1 to 65535", offset: offset + host.count + 1)
            }
        }
    }
}

extension Reader where Value == Template {
    /// - Parameters:
    ///   - needsName: Whether two files must get two results.
    ///   - isFilledAfterStaging: Whether the file's digest and its number in the database are known by then.
    static func template(needsName: Bool = false, isFilledAfterStaging: Bool = false) -> Reader {
        let expected = "a text that may hold placeholders, like `{folder}/{name}`"
        return Reader(expected: expected, isText: true, kind: .template) { text throws(ValueError) in
            let template: Template
            do throws(Template.SyntaxError) { template = try Template(text) } catch {
                // The mistake counts characters, and places count scalars.
                let offset = text.prefix(error.offset).unicodeScalars.count
                throw ValueError((error.problem.hasPrefix("a ") ? "has " : "") + error.problem, offset: offset)
            }
            guard !text.isEmpty else { throw ValueError("is empty; it takes \(expected)") }
            try refuseControls(in: text)
            let afterStaging = ["id", "sha256"]
            if !isFilledAfterStaging, let early = afterStaging.first(where: template.uses) {
                throw ValueError(
                    "uses `{\(early)}`, which has no value when Sluice picks a file up; only the target of a `move` can "
                        + "use it")
            }
            let telling = ["name", "stem", "relative"] + (isFilledAfterStaging ? afterStaging : [])
            guard !needsName || telling.contains(where: template.uses) else {
                throw ValueError(
                    "gives every file the same name; put `{name}` in it (or "
                        + telling.dropFirst().map { "`{\($0)}`" }.joined(separator: ", ") + ")")
            }
            return template
        }
    }

    /// The name of one file, or of one below some folder: relative, without `..`.
    ///
    /// - Parameter mayHaveFolders: Whether it may have slashes.
    static func relativeName(mayHaveFolders: Bool) -> Reader {
        let template = template(needsName: true)
        return Reader(expected: template.expected, isText: true, kind: .relativeName) { text throws(ValueError) in
            if !mayHaveFolders, text.contains("/") {
                throw ValueError("takes a name without `/`; `remote_name` sets the folder")
            }
            let parts = FilePath(text).components
            guard !text.hasPrefix("/"), !parts.contains(".."), !parts.contains(".") else {
                throw ValueError(
                    mayHaveFolders
                        ? "begins with `/`, or has `.` or `..` in it; names are relative to the destination, like "
                            + "`{folder}/{relative}`" : "is not a valid name; it takes one like `{stem}.mp4`")
            }
            // A bucket could keep an empty part, but folders cannot, and a person would wonder where it went.
            guard !text.contains("//"), !text.hasSuffix("/") else {
                throw ValueError(
                    "has an empty part, at `//` or after its last `/`; remove the `/`")
            }
            return try template.read(text)
        }
    }

    /// The absolute target of a `move`.
    static var target: Reader {
        let template = template(needsName: true, isFilledAfterStaging: true)
        let expected = "an absolute path that may hold placeholders, like `/srv/done/{year}/{name}`"
        return Reader(expected: expected, kind: .target) { text throws(ValueError) in
            guard text.hasPrefix("/") else {
                throw ValueError(
                    "takes \(expected), not \(quoted(text))")
            }
            guard !FilePath(text).components.contains("..") else {
                throw ValueError(
                    "has `..` in it, which means something else after a symbolic link; write the full path")
            }
            return try template.read(text)
        }
    }
}

extension Reader where Value == TrafficClass {
    /// `cs1`, `le`, `af11`, or a number from 0 to 63.
    static var trafficClass: Reader {
        let expected = "a code point, like `cs1` or `le`, or a number from 0 to 63"
        let names = TrafficClass.allNames
        return Reader(
            expected: expected,
            kind: .string(
                "DSCP",
                pattern: "^([Cc][Ss][0-7]|[Aa][Ff][1-4][1-3]|[Ee][Ff]|[Vv][Aa]|[Ll][Ee]|[0-9]|[1-5][0-9]|6[0-3])$")
        ) { text throws(ValueError) in
            guard let found = TrafficClass(text) else {
                throw ValueError(
                    "takes \(expected), not \(quoted(text))" + suggestion(for: text.lowercased(), among: names))
            }
            return found
        }
    }
}
