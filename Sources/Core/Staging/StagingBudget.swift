/// The space of the staging folder: decides whether it may take a file, by the limit and the minimum of free space.
package struct StagingBudget: Hashable, Sendable {
    package let folder: FilePath
    /// Bytes of the existing copies.
    package let used: Int64
    /// Free bytes of its file system.
    package let free: Int64
    /// `staging.max_size`.
    package let cap: Int64?
    /// `staging.keep_free`.
    package let keepFree: Int64

    package init(folder: FilePath, used: Int64, free: Int64, cap: Int64?, keepFree: Int64) {
        self.folder = folder
        self.used = used
        self.free = free
        self.cap = cap
        self.keepFree = keepFree
    }

    /// Space reserved for copies: the sizes of their files, and the bytes on the disk, which are fewer for files with
    /// holes.
    package struct Reservation: Hashable, Sendable {
        package var size: Int64
        package var need: Int64

        package init(size: Int64 = 0, need: Int64 = 0) {
            self.size = size
            self.need = need
        }

        package static func + (a: Reservation, b: Reservation) -> Reservation {
            Reservation(size: a.size + b.size, need: a.need + b.need)
        }

        package static func - (a: Reservation, b: Reservation) -> Reservation {
            Reservation(size: a.size - b.size, need: a.need - b.need)
        }
    }

    /// The reason why a file does not fit.
    package struct Obstacle: Hashable, Sendable {
        /// For a person.
        package var text: String
        /// The part of the text whose change is logged.
        package var changeKey: String
    }

    /// The obstacle for a file; `nil` when it fits.
    ///
    /// - Parameters:
    ///   - file: Its path.
    ///   - wanted: Its size, and the bytes that its copy will use on the disk.
    ///   - reserved: The space of copies in progress.
    package func obstacle(for file: FilePath, _ wanted: Reservation, reserved: Reservation) -> Obstacle? {
        if let cap, used + reserved.size + wanted.size > cap {
            return Obstacle(
                text:
                    "\(folder.display) holds \(shownBytes(used + reserved.size)) of at most \(shownBytes(cap)) (`staging.max_size`), and \(file.display), which is next, has \(shownBytes(wanted.size)): it goes on when uploads are done",
                changeKey: "max_size")
        }
        if wanted.need > 0, free - reserved.need - wanted.need < keepFree {
            return Obstacle(
                text:
                    "not enough space in \(folder.display): \(shownBytes(max(0, free - reserved.need))) free, \(file.display), which is next, needs \(shownBytes(wanted.need)), and \(shownBytes(keepFree)) are to stay free (`staging.keep_free`); it goes on when uploads are done or room is made",
                changeKey: "keep_free")
        }
        return nil
    }
}
