internal import Core

/// Reads `busy` at any place.
extension SettingsReading {
    private static let forms = "`{file: /run/camera/recording}` or `{command: [/usr/local/bin/is-recording]}`"

    func busy(_ fields: MappingReader) -> BusyRule? {
        guard let node = fields.node("busy") else { return nil }
        guard case .mapping = node.content else {
            fields.error("takes \(Self.forms), not \(node.kindName)", "busy")
            return nil
        }
        let busy = fields.fields("busy", .busy)
        var rule = BusyRule(.command([]))
        BusyRule.timeKeys.read(busy, into: &rule, self)
        guard busy.has("file") != busy.has("command") else {
            let both = busy.has("file")
            fields.error(
                both
                    ? "names a file and a command; keep one of the two, and put the other under another place's `busy`"
                    : "names neither a file nor a command; write \(Self.forms)", "busy")
            return nil
        }
        if busy.has("file") {
            for key in BusyRule.timeKeys where busy.has(key.name) {
                busy.error("belongs to `command`; a file is watched, and needs no time", key.name)
            }
        }
        return BusyRule.sourceKeys.read(busy, into: &rule, self).isEmpty ? nil : rule
    }
}

extension BusyRule {
    static let keys = sourceKeys + timeKeys
    /// Exactly one of them is set.
    fileprivate static let sourceKeys: [Key<Self>] = [
        Key("file", \.source, { $1.read("file", as: .path).map { .file($0.value) } }) { source, _ in
            if case .file(let path) = source { .value(path.inFile) } else { nil }
        }.takes(.path),
        Key("command", \.source, { $0.busyCommand($1) }) { source, pieces in
            if case .command(let words) = source { pieces.command(words) } else { nil }
        }.takes(.program),
    ]
    fileprivate static let timeKeys: [Key<Self>] = [
        Key("every", \.every, .duration(.seconds(1) ... .seconds(3600))).printed { !$0.source.isFile },
        Key("timeout", \.timeout, .duration(.milliseconds(100) ... .seconds(60))).printed { !$0.source.isFile },
    ]
}

extension SettingsReading {
    fileprivate func busyCommand(_ busy: MappingReader) -> BusySource? {
        program(busy, example: "/usr/local/bin/is-recording", meanwhile: "until then it counts as busy")
            .map { .command($0) }
    }
}
