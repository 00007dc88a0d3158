package import Core

/// The owner of an unfinished upload at a remote.
package enum RemoteOwnership: Hashable, Sendable {
    /// This upload continues it, or is about to remove it.
    case used(String)
    /// One of our uploads began it, and has no record of it any more.
    case ours
    case foreign
}

/// Objects at a destination, and the uploads that own them.
package struct RemoteObjects<Access> {
    let tx: Transaction<Access>

    /// The uploads that made a destination's objects with these names, or are about to.
    ///
    /// - Returns: By the destination's names. The newest, where several have the same name.
    package func uploads(named names: [String], at destination: String) throws -> [String: String] {
        var found: [String: String] = [:]
        for name in names {
            found[name] = try tx.connection.first(
                "SELECT upload FROM history WHERE destination = ?1 AND remote_id = ?2 ORDER BY id DESC LIMIT 1",
                [.text(destination), .text(name)]
            ) { $0.text(0) }
        }
        // A begun upload is not in the history. A dialect keeps its names in a field of its own.
        let begun = try tx.connection.all(
            "SELECT id, body FROM checkpoint CROSS JOIN upload ON id = checkpoint.upload WHERE destination = ?1",
            [.text(destination)]
        ) { ($0.text(0), TextMap.map($0.text(1)) ?? [:]) }
        for (upload, fields) in begun {
            for name in names where fields.values.contains(name) { found[name] = upload }
        }
        return found
    }

    /// Whether another upload has this id at a destination. Two destinations may be one account, so all of them count.
    ///
    /// - Parameter id: The upload that asks.
    package func belongsToAnotherUpload(_ remoteID: String, than id: String) throws -> Bool {
        let destinations = try tx.connection.all("SELECT DISTINCT destination FROM tally") { $0.text(0) }
        return try destinations.contains { destination in
            try uploads(named: [remoteID], at: destination)[remoteID].map { $0 != id } ?? false
        }
    }

    /// Finds the owners of unfinished uploads. A name alone proves nothing: other programs may use it too, before or
    /// after us. An object is ours if it was begun under a name of one of our uploads, in the time of that upload.
    ///
    /// - Parameter unfinished: For each, the remote's own id, its future name in the destination's form, and the time
    ///   when it was begun; without a time it counts as foreign.
    package func ownership(
        of unfinished: [(id: String, name: String, begunAt: WallTime?)], at destination: String
    ) throws -> [RemoteOwnership] {
        let used = try uploads(named: unfinished.map(\.id), at: destination)
        let going = try tx.connection.all(
            "SELECT upload, checkpoint FROM remote_delete WHERE destination = ?1", [.text(destination)]
        ) { ($0.text(0), TextMap.map($0.text(1)) ?? [:]) }
        // Made in one pass: names have no index, and a person asks this rarely.
        var live: [String: String] = [:]
        var spans: [String: [ClosedRange<Int64>]] = [:]
        let wanted = Set(unfinished.map(\.name))
        for row in try tx.connection.all(
            "SELECT id, name, state, created_at, finished_at FROM upload WHERE destination = ?1", [.text(destination)],
            {
                (
                    id: $0.text(0), name: FilePath(bytes: $0.blob(1)), state: $0.text(2), from: $0.integer(3),
                    to: $0.optionalInteger(4)
                )
            })
        {
            // If the name was taken, the object's name has a number.
            for number in 1...9 {
                let shown = row.name.numbered(number).display
                guard wanted.contains(shown) else { continue }
                spans[shown, default: []].append(Self.span(row.from, row.to ?? .max))
                if row.state == UploadState.uploading.rawValue { live[shown] = row.id }
            }
        }
        for name in wanted {
            spans[name, default: []] += try tx.connection.all(
                "SELECT created_at, finished_at FROM history WHERE destination = ?1 AND remote_id = ?2",
                [.text(destination), .text(name)]
            ) { Self.span($0.integer(0), $0.integer(1)) }
        }
        return unfinished.map { one in
            if let upload = used[one.id] ?? going.first(where: { $0.1.values.contains(one.id) })?.0 ?? live[one.name] {
                return .used(upload)
            }
            guard let begun = one.begunAt?.milliseconds else { return .foreign }
            return spans[one.name]?.contains { $0.contains(begun) } == true ? .ours : .foreign
        }
    }

    /// Some remotes report whole seconds.
    private static func span(_ from: Int64, _ to: Int64) -> ClosedRange<Int64> { from - 1000...max(from, to) }
}

extension Transaction {
    package var remoteObjects: RemoteObjects<Access> { RemoteObjects(tx: self) }
}
