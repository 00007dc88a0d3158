extension Failure {
    /// A cause of a failure that ends an upload or makes it wait, as far as decisions depend on it besides ``Remedy``.
    ///
    /// A failure is stored with its code. Each cause has one, and no other code is compared to decide.
    package enum Cause: CaseIterable, Sendable {
        /// The upload was too old.
        case age
        /// A program of `before_upload` rejected it.
        case rejection
        /// There is a newer version of its source, and it has no copy.
        case newerSource
        /// Another destination of `first_of` has the file.
        case alternative
        /// A quota leaves less than its next request needs.
        case quota
        /// Its source is read in place, and is away with its disk.
        case absence

        /// - Returns: `nil` for the code of any other failure.
        package init?(_ code: Code) {
            guard let cause = Self.allCases.first(where: { $0.code == code }) else { return nil }
            self = cause
        }

        package var code: Code {
            switch self {
            case .age: .expired
            case .rejection: .skipped
            case .newerSource: .sourceChanged
            case .alternative: .superseded
            case .quota: .shortOfQuota
            case .absence: .sourceAbsent
            }
        }
    }

    /// `nil` for a failure of another cause.
    package var cause: Cause? { Cause(code) }
}
