/// How a file is cut into parts: all of one size, but for the last. Sizes and offsets in bytes.
///
/// The one place where a part's number, offset, length and being the last come from.
package struct PartPlan: Hashable, Sendable {
    /// What becomes of the rest that does not fill a part.
    package enum Rule: String, Hashable, Sendable, CaseIterable {
        /// It is a part of its own, shorter than the others.
        case short
        /// The last part takes it, and has less than twice the size of the others.
        case merge
    }

    package struct Part: Hashable, Sendable {
        /// From 0.
        package let index: Int
        package let offset: Int64
        package let length: Int64
        package let isLast: Bool

        /// Behind its last byte.
        package var end: Int64 { offset + length }
        package var range: Range<Int64> { offset..<end }
    }

    /// Of the file.
    package let size: Int64
    package let partSize: Int64
    package let rule: Rule
    /// At least 1: an empty file is one part without a byte.
    package let count: Int

    /// - Returns: `nil` for sizes that no file and no part has.
    package init?(size: Int64, partSize: Int64, rule: Rule = .short) {
        guard size >= 0, partSize > 0 else { return nil }
        self.size = size
        self.partSize = partSize
        self.rule = rule
        let rest = rule == .short && size % partSize > 0
        count = Int(max(1, size / partSize + (rest ? 1 : 0)))
    }

    /// - Parameter index: From 0, and below ``count``.
    package subscript(index: Int) -> Part {
        let offset = Int64(index) * partSize
        let isLast = index == count - 1
        return Part(index: index, offset: offset, length: isLast ? size - offset : partSize, isLast: isLast)
    }
}

/// A part that a remote has acknowledged.
package struct TakenPart: Hashable, Sendable {
    /// From 0.
    package var index: Int
    /// Bytes.
    package var size: Int64
    /// What the remote wants to hear of it when the upload is completed; empty where that is nothing.
    package var tag: String

    package init(index: Int, size: Int64, tag: String = "") {
        self.index = index
        self.size = size
        self.tag = tag
    }
}
