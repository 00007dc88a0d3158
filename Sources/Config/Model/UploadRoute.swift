package import Core

/// An item of `upload_to`: a destination, and which files go there.
package struct UploadRoute: Hashable, Sendable {
    package var to: String
    /// A condition about the file alone; `nil` for every file.
    package var when: Condition?

    package init(to: String, when: Condition? = nil) {
        self.to = to
        self.when = when
    }

    /// A file that does not tell is taken: it is better sent than lost.
    package func takes(_ file: FileFacts) -> Bool { when?.truth(of: file) != .no }
}
