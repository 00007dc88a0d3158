// What a destination holds, and whose it is.

extension Store {
    /// The uploads that made what a destination calls by these names, or that are about to.
    ///
    /// - Returns: By the destination's names. The newest, where several say so.
    package func uploads(named names: [String], at destination: String) throws -> [String: String] {
        var found: [String: String] = [:]
        for name in names {
            found[name] = try connection.first(
                "SELECT upload FROM history WHERE destination = ?1 AND remote_id = ?2 ORDER BY id DESC LIMIT 1",
                [.text(destination), .text(name)]
            ) { $0.text(0) }
        }
        // What is begun is not in the history. A dialect keeps its names in a field of its own.
        let begun = try connection.all(
            "SELECT id, body FROM checkpoint CROSS JOIN upload ON id = checkpoint.upload WHERE destination = ?1",
            [.text(destination)]
        ) { ($0.text(0), TextMap.map($0.text(1)) ?? [:]) }
        for (upload, fields) in begun {
            for name in names where fields.values.contains(name) { found[name] = upload }
        }
        return found
    }
}
