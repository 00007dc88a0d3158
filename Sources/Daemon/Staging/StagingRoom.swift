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
    /// - Parameters:
    ///   - file: Its path.
    ///   - need: Bytes that its copy will take on the disk.
    ///   - promised: The same of the copies that are being made.
    /// - Returns: The text, and the part of it that is worth a line in the log when it changes.
    func obstacle(for file: FilePath, size: Int64, need: Int64, _ promised: Promise) -> (
        text: String, news: String
    )? {
        if let cap, used + promised.size + size > cap {
            return (
                "\(folder.display) holds \(shownBytes(used + promised.size)) of at most \(shownBytes(cap)) (`staging.max_size`), and \(file.display), which is next, has \(shownBytes(size)): it goes on when uploads are done",
                "max_size"
            )
        }
        if need > 0, free - promised.need - need < keepFree {
            return (
                "no room in \(folder.display): \(shownBytes(max(0, free - promised.need))) are free, \(file.display), which is next, needs \(shownBytes(need)), and \(shownBytes(keepFree)) are to stay free (`staging.keep_free`); it goes on when uploads are done or room is made",
                "keep_free"
            )
        }
        return nil
    }

    /// Room that copies are to take: by the size of their files, and on the disk, which is less for files with holes.
    struct Promise: Sendable {
        var size: Int64 = 0
        var need: Int64 = 0

        static func + (a: Promise, b: Promise) -> Promise { Promise(size: a.size + b.size, need: a.need + b.need) }
        static func - (a: Promise, b: Promise) -> Promise { Promise(size: a.size - b.size, need: a.need - b.need) }
    }
}
