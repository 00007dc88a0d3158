/// For how long what is over stays in its list, and then in the history: `retention`.
///
/// Ages count while the daemon runs: a box without a battery for its clock begins in 1970 and jumps, and what nobody could
/// have seen is not taken away.
package struct ListRetention: Hashable, Sendable {
    /// What keeps a list short; what is `nil` does not.
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
    /// Since the end of the upload.
    package var history: Duration? = .seconds(90 * 86_400)

    /// No configuration takes a completed upload away earlier: who asks now and then is to see each.
    package static let leastCompleted: Duration = .seconds(10)
    package static let leastFailed: Duration = .seconds(60)

    package init() {}
}
