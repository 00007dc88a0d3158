/// How long a finished upload stays in its list, and then in the history: `retention`.
///
/// Ages count while the daemon runs: a machine without a battery for its clock begins in 1970 and jumps, and an upload
/// that could not have been seen must not be removed.
package struct ListRetention: Hashable, Sendable {
    /// The limits of a list; `nil` is no limit.
    package struct Limits: Hashable, Sendable {
        package var time: Duration?
        package var most: Int?

        package init(time: Duration?, most: Int? = nil) {
            self.time = time
            self.most = most
        }
    }

    package var completed = Limits(time: .seconds(7 * 86_400), most: 10_000)
    package var failed = Limits(time: .seconds(30 * 86_400), most: 1_000)
    package var cancelled = Limits(time: .seconds(3_600))
    /// Time since the end of the upload.
    package var history: Duration? = .seconds(90 * 86_400)

    /// No configuration removes a completed upload earlier, so that a client which polls sees each one.
    package static let minCompleted: Duration = .seconds(10)
    package static let minFailed: Duration = .seconds(60)

    package init() {}
}
