/// How small files go to a destination together, in one transfer: their records, syncs and looks are then shared, which
/// for a small file are nearly all of its cost.
package struct Bundling: Hashable, Sendable {
    /// Bytes of the largest file that goes with others.
    package var largest: Int64
    /// Files in one transfer.
    package var files: Int
    /// Bytes in one transfer: what a stop or a more urgent file waits for at most.
    package var bytes: Int64

    package init(largest: Int64, files: Int, bytes: Int64) {
        self.largest = largest
        self.files = files
        self.bytes = bytes
    }
}

/// What may be taken from the queue for the transfers that are free: each takes one file, or a bundle of small ones.
///
/// A pure count. Files are offered in their order, and the first that has no room any more ends it: none is passed over
/// because it is large.
package struct TransferRoom: Sendable {
    private let slots: Int
    private let bundling: Bundling?
    private let counted: Set<String>
    private var used = 0
    /// A file of a folder that is counted was taken: what may follow is another question.
    private var isClosed = false
    /// The bundle that is filled now.
    private var bundle: (files: Int, bytes: Int64) = (0, 0)

    /// - Parameter counted: Folders with a limit of their own: a file of one goes alone, and nothing is taken after it
    ///   before the limit was looked at again.
    package init(slots: Int, bundling: Bundling? = nil, counted: Set<String> = []) {
        self.slots = slots
        self.bundling = bundling
        self.counted = counted
    }

    /// Whether a file goes with others: small, and without an earlier attempt that is to be gone on with.
    package func isBundled(size: Int64, isBegun: Bool, of folder: String) -> Bool {
        bundling.map { !isBegun && size <= $0.largest && !counted.contains(folder) } ?? false
    }

    /// Whether this file would go into the bundle that is being filled.
    package func joins(size: Int64, isBegun: Bool, of folder: String) -> Bool {
        guard let bundling, !isClosed, isBundled(size: size, isBegun: isBegun, of: folder) else { return false }
        return bundle.files > 0 && bundle.files < bundling.files && size <= bundling.bytes - bundle.bytes
    }

    /// Whether this file may be taken too; counts it then.
    package mutating func takes(size: Int64, isBegun: Bool, of folder: String) -> Bool {
        if isClosed { return false }
        if counted.contains(folder) {
            guard used == 0 else { return false }
            isClosed = true
        }
        if joins(size: size, isBegun: isBegun, of: folder) {
            bundle = (bundle.files + 1, bundle.bytes + size)
            return true
        }
        guard used < slots else { return false }
        used += 1
        if isBundled(size: size, isBegun: isBegun, of: folder) { bundle = (1, size) }
        return true
    }

    /// Shares what was taken out among the transfers: a few small files go side by side rather than in one bundle.
    ///
    /// - Parameter isBundled: What ``isBundled(size:isBegun:of:)`` said of it.
    package func shared<Taken>(_ taken: [Taken], isBundled: (Taken) -> Bool) -> [[Taken]] {
        let alone = taken.filter { !isBundled($0) }.map { [$0] }
        let small = taken.filter(isBundled)
        let lanes = min(max(1, slots - alone.count), small.count)
        var lists = [[Taken]](repeating: [], count: lanes)
        for (number, one) in small.enumerated() { lists[number % lanes].append(one) }
        return alone + lists
    }
}
