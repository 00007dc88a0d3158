internal import Core

/// Reads `busy` at any place.
extension SettingsReading {
    private static let forms = "`{file: /run/camera/recording}` or `{command: [/usr/local/bin/is-recording]}`"

    func busy(_ fields: Fields) -> BusyRule? {
        guard let node = fields.node("busy") else { return nil }
        guard case .mapping = node.content else {
            fields.error("takes \(Self.forms), not \(node.kindName)", "busy")
            return nil
        }
        let busy = fields.fields("busy", .busy)
        let every = busy.read("every", as: .duration(.seconds(1) ... .seconds(3600)))
        let timeout = busy.read("timeout", as: .duration(.milliseconds(100) ... .seconds(60)))
        guard busy.has("file") != busy.has("command") else {
            let both = busy.has("file")
            fields.error(
                both
                    ? "names a file and a command; keep one of the two, and put the other under another place's `busy`"
                    : "names neither a file nor a command; write \(Self.forms)", "busy")
            return nil
        }
        if busy.has("file") {
            for key in ["every", "timeout"] where busy.has(key) {
                busy.error("belongs to `command`; a file is watched, and needs no time", key)
            }
            return busy.read("file", as: .path).map { BusyRule(.file($0.value)) }
        }
        guard
            let words = program(
                busy, example: "/usr/local/bin/is-recording", meanwhile: "until then it counts as busy")
        else { return nil }
        return BusyRule(.command(words), every: every?.value ?? .seconds(30), timeout: timeout?.value ?? .seconds(10))
    }
}

extension BusyRule {
    func written(_ pieces: EffectivePieces) -> WrittenValue {
        switch source {
        case .file(let path): .fields([("file", path.inFile)])
        case .command(let words):
            .fields([
                ("command", pieces.shown(words).inFile), ("every", every.inFile), ("timeout", timeout.inFile),
            ])
        }
    }
}
