internal import Core

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

    /// Whose an unfinished upload at a remote is.
    package enum Ownership: Hashable, Sendable {
        /// This upload goes on with it, or is about to remove it.
        case used(String)
        /// One of ours began it, and knows nothing of it any more.
        case ours
        case foreign
    }

    /// - Parameter names: What each is to become, as the destination calls it.
    package func ownership(of unfinished: [(id: String, name: String)], at destination: String) throws -> [Ownership] {
        let used = try uploads(named: unfinished.map(\.id), at: destination)
        let going = try connection.all(
            "SELECT upload, checkpoint FROM remote_delete WHERE destination = ?1", [.text(destination)]
        ) { ($0.text(0), TextMap.map($0.text(1)) ?? [:]) }
        // Made in one pass: names have no index, and this is asked by hand.
        var live: [String: String] = [:]
        var known: Set<String> = []
        let wanted = Set(unfinished.map(\.name))
        for (id, name, state) in try connection.all(
            "SELECT id, name, state FROM upload WHERE destination = ?1", [.text(destination)],
            { ($0.text(0), FilePath(bytes: $0.blob(1)), $0.text(2)) })
        {
            // Where a name was taken the object has a number.
            for number in 1...9 {
                let shown = name.numbered(number).display
                guard wanted.contains(shown) else { continue }
                known.insert(shown)
                if state == UploadState.uploading.rawValue { live[shown] = id }
            }
        }
        let past = try self.uploads(named: Array(wanted), at: destination)
        return unfinished.map { one in
            if let upload = used[one.id] ?? going.first(where: { $0.1.values.contains(one.id) })?.0 ?? live[one.name] {
                return .used(upload)
            }
            return known.contains(one.name) || past[one.name] != nil ? .ours : .foreign
        }
    }
}
