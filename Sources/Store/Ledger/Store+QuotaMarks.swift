package import Core

// Shares of quotas that were announced.

extension Store {
    /// Writes an event for each reached share, and remembers that it was announced: one transaction, durable when it
    /// returns.
    package func tell(_ reached: [QuotaMarks.Reached], _ marks: QuotaMarks) async throws {
        let text = try Self.json(marks)
        try await change { connection in
            for one in reached { try self.note("quota_reached", nil, one.detail) }
            try connection.run("INSERT OR REPLACE INTO setting VALUES ('quota marks', ?1)", [.text(text)])
        }
    }

    /// The marks that ``tell(_:_:)`` stored last.
    package func quotaMarks() throws -> QuotaMarks {
        let text = try connection.first("SELECT value FROM setting WHERE name = 'quota marks'") { $0.text(0) }
        return text.flatMap { Self.value(QuotaMarks.self, json: $0) } ?? QuotaMarks()
    }
}

extension QuotaMarks.Reached {
    /// The fields of the event.
    package var detail: [String: String] {
        var detail = [
            "place": place.words, "quota": text, "counts": counts, "network": quota.network.rawValue,
            "threshold": "\(threshold)", "percent": "\(percent)", "used": "\(used)", "limit": "\(limit)",
            "from": stretch.lowerBound.description, "until": stretch.upperBound.description,
        ]
        if counts == "bytes" { detail["direction"] = quota.direction.rawValue }
        switch place {
        case .policy: break
        case .destination(let name): detail["destination"] = name
        case .folder(let name): detail["folder"] = name
        }
        return detail
    }
}
