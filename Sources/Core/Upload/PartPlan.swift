/// How a file is cut into parts: all of one size, except the last. Sizes and offsets in bytes.
///
/// The only code that computes a part's number, offset and length, and whether it is the last.
package struct PartPlan: Hashable, Sendable {
    /// The rule for the rest that does not fill a part.
    package enum Rule: String, Hashable, Sendable, CaseIterable {
        /// It is a part of its own, shorter than the others.
        case short
        /// The last part includes it, and has less than twice the size of the others.
        case merge
    }

    package struct Part: Hashable, Sendable {
        /// Counted from 0.
        package let index: Int
        package let offset: Int64
        package let length: Int64
        package let isLast: Bool

        /// The offset after its last byte.
        package var end: Int64 { offset + length }
        package var range: Range<Int64> { offset..<end }
    }

    /// Size of the file.
    package let size: Int64
    package let partSize: Int64
    package let rule: Rule
    /// At least 1: an empty file is one part without a byte.
    package let count: Int

    /// - Returns: `nil` for impossible sizes.
    package init?(size: Int64, partSize: Int64, rule: Rule = .short) {
        guard size >= 0, partSize > 0 else { return nil }
        self.size = size
        self.partSize = partSize
        self.rule = rule
        let rest = rule == .short && size % partSize > 0
        count = Int(max(1, size / partSize + (rest ? 1 : 0)))
    }

    /// - Parameter index: Counted from 0, and below ``count``.
    package subscript(index: Int) -> Part {
        let offset = Int64(index) * partSize
        let isLast = index == count - 1
        return Part(index: index, offset: offset, length: isLast ? size - offset : partSize, isLast: isLast)
    }
}

/// A part that a remote has acknowledged.
package struct AcknowledgedPart: Hashable, Sendable {
    /// Counted from 0.
    package var index: Int
    /// In bytes.
    package var size: Int64
    /// The value for the part that the remote requires when the upload is completed; empty where there is none.
    package var tag: String

    package init(index: Int, size: Int64, tag: String = "") {
        self.index = index
        self.size = size
        self.tag = tag
    }
}
