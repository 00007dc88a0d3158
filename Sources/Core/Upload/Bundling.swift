/// How small files are sent to a destination together, in one transfer. They share their records, syncs and checks,
/// which are nearly all of the cost of a small file.
package struct Bundling: Hashable, Sendable {
    /// Size of the largest file that is bundled.
    package var largest: Int64
    /// Files in one transfer.
    package var files: Int
    /// Bytes in one transfer: the most that a stop or a more urgent file waits for.
    package var bytes: Int64

    package init(largest: Int64, files: Int, bytes: Int64) {
        self.largest = largest
        self.files = files
        self.bytes = bytes
    }
}

/// The number of files that may be taken from the queue for the free transfers: each takes one file, or a bundle of
/// small ones.
///
/// A pure count. Files are offered in their order, and the first that does not fit ends it: none is skipped because it
/// is large.
package struct BatchLimits: Sendable {
    private let slots: Int
    private let bundling: Bundling?
    private let counted: Set<String>
    private var used = 0
    /// A file of a folder with a limit was taken: the limit has to be evaluated again before the next file.
    private var isClosed = false
    /// The bundle that is being filled.
    private var bundle: (files: Int, bytes: Int64) = (0, 0)

    /// - Parameter counted: Folders with a limit of their own: a file from one is sent alone, and no file is taken
    ///   after it before the limit was evaluated again.
    package init(slots: Int, bundling: Bundling? = nil, counted: Set<String> = []) {
        self.slots = slots
        self.bundling = bundling
        self.counted = counted
    }

    /// Whether a file is bundled: small, and without an earlier attempt that has to be continued.
    package func isBundled(size: Int64, isBegun: Bool, of folder: String) -> Bool {
        bundling.map { !isBegun && size <= $0.largest && !counted.contains(folder) } ?? false
    }

    /// Whether this file would be added to the bundle that is being filled.
    package func joinsBundle(size: Int64, isBegun: Bool, of folder: String) -> Bool {
        guard let bundling, !isClosed, isBundled(size: size, isBegun: isBegun, of: folder) else { return false }
        return bundle.files > 0 && bundle.files < bundling.files && size <= bundling.bytes - bundle.bytes
    }

    /// Whether this file may be taken too; if so, counts it.
    package mutating func accept(size: Int64, isBegun: Bool, of folder: String) -> Bool {
        if isClosed { return false }
        if counted.contains(folder) {
            guard used == 0 else { return false }
            isClosed = true
        }
        if joinsBundle(size: size, isBegun: isBegun, of: folder) {
            bundle = (bundle.files + 1, bundle.bytes + size)
            return true
        }
        guard used < slots else { return false }
        used += 1
        if isBundled(size: size, isBegun: isBegun, of: folder) { bundle = (1, size) }
        return true
    }

    /// Distributes the taken files among the transfers: a few small files are sent in parallel rather than in one
    /// bundle.
    ///
    /// - Parameter isBundled: The result of ``isBundled(size:isBegun:of:)`` for it.
    package func groupedByTransfer<Taken>(_ taken: [Taken], isBundled: (Taken) -> Bool) -> [[Taken]] {
        let alone = taken.filter { !isBundled($0) }.map { [$0] }
        let small = taken.filter(isBundled)
        let transferCount = min(max(1, slots - alone.count), small.count)
        var lists = [[Taken]](repeating: [], count: transferCount)
        for (number, one) in small.enumerated() { lists[number % transferCount].append(one) }
        return alone + lists
    }
}
