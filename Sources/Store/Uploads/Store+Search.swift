internal import Core

extension Store {
    /// Newest first.
    ///
    /// A text or a context is searched in all files, a piece at a time, and other callers get their turn in between.
    package func rows(_ filter: UploadFilter) async throws -> [UploadRow] {
        if filter.text != nil || !filter.context.isEmpty { return try await search(filter) }
        return try read { tx in try tx.lists.ids(filter).compactMap { try tx.uploads.row($0) } }
    }

    private func search(_ filter: UploadFilter) async throws -> [UploadRow] {
        var range = try read { tx in try tx.lists.assetRange(of: filter) }
        var found: [UploadRow] = []
        while !range.isEmpty && found.count < filter.limit {
            let piece = max(range.lowerBound, range.upperBound - assetsInPiece)..<range.upperBound
            let most = filter.limit - found.count
            found += try read { tx in try tx.lists.rows(filter, ofAssets: piece, most: most) }
            range = range.lowerBound..<piece.lowerBound
            await Task.yield()
        }
        return found
    }
}

/// Assets that are examined in one piece of a search.
private let assetsInPiece: Int64 = 4_096
