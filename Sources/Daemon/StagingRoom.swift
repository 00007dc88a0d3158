internal import Core

/// Whether the cache may take a file: the cap, and the floor of free space.
struct StagingRoom: Sendable {
    let folder: FilePath
    /// Bytes of the copies that are there.
    let used: Int64
    /// Bytes that its file system has left.
    let free: Int64
    /// `staging.max_size`.
    let cap: Int64?
    /// `staging.keep_free`.
    let keepFree: Int64

    /// What is in the way of a file, for a person; `nil` when it fits.
    ///
    /// - Parameter promised: Bytes of the copies that are being made.
    /// - Returns: The text, and the part of it that is worth a line in the log when it changes.
    func obstacle(for size: Int64, _ promised: Int64) -> (text: String, news: String)? {
        if let cap, used + promised + size > cap {
            return (
                "\(folder.display) holds \(used + promised) of at most \(cap) bytes, and the next file has \(size): it goes on when uploads are done",
                "max_size"
            )
        }
        if free - promised - size < keepFree {
            return (
                "no room in \(folder.display): \(max(0, free - promised)) bytes are free, the next file has \(size), and \(keepFree) are to stay free; it goes on when uploads are done or room is made",
                "keep_free"
            )
        }
        return nil
    }
}
