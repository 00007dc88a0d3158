package import Core

/// An item of `upload_to`: a destination, or several of which one is enough, and which files go there.
package struct UploadRoute: Hashable, Sendable {
    /// At least one. Where there are more, the file is to be at one of them, and they are tried in this order.
    package var destinations: [String]
    /// How long a file waits for the earlier destinations before the next one may take over; `nil` for a single
    /// destination.
    package var after: Duration?
    /// A condition about the file alone; `nil` for every file.
    package var when: Condition?

    package init(to destination: String, when: Condition? = nil) {
        destinations = [destination]
        self.when = when
    }

    package init(firstOf destinations: [String], after: Duration, when: Condition? = nil) {
        self.destinations = destinations
        self.after = after
        self.when = when
    }

    /// For sentences: `nas`, or `the first of nas and cloud`.
    package var words: String {
        guard after != nil, destinations.count > 1 else { return destinations.joined(separator: ", ") }
        return "the first of \(destinations.dropLast().joined(separator: ", ")) and \(destinations.last ?? "")"
    }

    /// A file that does not tell is taken: it is better sent than lost.
    package func takes(_ file: FileFacts) -> Bool { when?.truth(of: file) != .no }
}
