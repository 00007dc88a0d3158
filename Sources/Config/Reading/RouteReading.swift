internal import Core

/// Reads `upload_to`: names, and mappings with one or several names and the condition of the files that go there.
struct RouteReading {
    private let reading: SettingsReading
    private let conditions: ConditionReading

    init(_ reading: SettingsReading) {
        self.reading = reading
        conditions = ConditionReading(reading, in: .route)
    }

    private typealias Name = MappingReader.Found<String>

    func routes(_ fields: MappingReader) -> [UploadRoute]? {
        guard let node = fields.node("upload_to") else { return nil }
        var items = [node]
        if case .list(let list) = node.content { items = list }
        if items.isEmpty { fields.error("names no destination; a folder needs at least one", "upload_to") }
        var routes: [UploadRoute] = []
        var named: Set<String> = []
        for (index, item) in items.enumerated() {
            let key = fields.path(of: "upload_to") + (items.count == 1 && item.start == node.start ? "" : "[\(index)]")
            guard let (names, make) = route(item, key) else { continue }
            let known = names.filter { isUsable($0, &named) }
            if !known.isEmpty { routes.append(make(known.map(\.value))) }
        }
        return routes
    }

    /// Whether a destination has the name, and the list did not name it before.
    private func isUsable(_ name: Name, _ named: inout Set<String>) -> Bool {
        let remedy = "there is none; add it under `destinations`"
        guard reading.isKnown(name, "destination", reading.destinationNames, remedy: remedy) else { return false }
        if named.insert(name.value).inserted { return true }
        reading.findings.error(
            "\(quoted(name.value)) is named twice: a file is sent to a destination once; remove one of them",
            at: name.place, key: name.key)
        return false
    }

    /// - Returns: The names in an item, and its route to those of them that exist; `nil` for an item that cannot be
    ///   read, which was reported.
    private func route(_ item: Node, _ key: String) -> (names: [Name], make: ([String]) -> UploadRoute)? {
        guard case .mapping = item.content else {
            return reading.findings.read(item, path: key, as: .name).map { name in
                ([Name(value: name, node: item, key: key)], { UploadRoute(to: $0[0]) })
            }
        }
        let inner = MappingReader(item, .route, path: key, start: item.start, findings: reading.findings)
        let when = inner.has("if") ? conditions.fileCondition(inner, "if") : nil
        if inner.has("first_of") { return alternatives(inner, when) }
        inner.require(
            "to",
            "name the destination, like `{to: nas, if: {kind: video}}`, or those of which one is enough, like "
                + "`{first_of: [nas, cloud], after: 6h}`")
        inner.require("if", "say which files go there, like `if: {kind: video}`; for every file, write the name alone")
        if inner.has("after") {
            inner.error("belongs to `first_of: [nas, cloud]`, which tries one destination after the other", "after")
        }
        return inner.read("to", as: .name).map { name in ([name], { UploadRoute(to: $0[0], when: when) }) }
    }

    private func alternatives(
        _ inner: MappingReader, _ when: Condition?
    ) -> (names: [Name], make: ([String]) -> UploadRoute)? {
        inner.require(
            "after",
            "say how long a file waits for the first destination before the next may take over, like `after: 6h`")
        if inner.has("to") { inner.error("goes without `first_of`; name all destinations there", "to") }
        let after = inner.read("after", as: .duration(UploadRoute.waits))?.value
        guard let names = inner.list("first_of", as: .name) else { return nil }
        if names.count < 2, inner.items("first_of", expected: "a list")?.count ?? 0 < 2 {
            inner.error(
                "names fewer than two destinations: to send every file to one, write its name alone", "first_of")
            return nil
        }
        guard let after else { return (names, { UploadRoute(to: $0[0]) }) }
        return (names, { UploadRoute(firstOf: $0, after: after, when: when) })
    }
}
