internal import Core

/// The free space of the cache: decides whether it may take a file, by the limit and the minimum of free space.
struct StagingBudget: Sendable {
    let folder: FilePath
    /// Bytes of the existing copies.
    let used: Int64
    /// Free bytes of its file system.
    let free: Int64
    /// `staging.max_size`.
    let cap: Int64?
    /// `staging.keep_free`.
    let keepFree: Int64

    /// The obstacle for a file, for a person; `nil` when it fits.
    ///
    /// - Parameters:
    ///   - file: Its path.
    ///   - need: Bytes that its copy will use on the disk.
    ///   - promised: The promises to copies in progress.
    /// - Returns: The text, and the part of it whose change is logged.
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

    /// Space promised to copies: the sizes of their files, and the bytes on the disk, which are fewer for files with
    /// holes.
    struct Promise: Sendable {
        var size: Int64 = 0
        var need: Int64 = 0

        static func + (a: Promise, b: Promise) -> Promise { Promise(size: a.size + b.size, need: a.need + b.need) }
        static func - (a: Promise, b: Promise) -> Promise { Promise(size: a.size - b.size, need: a.need - b.need) }
    }
}
