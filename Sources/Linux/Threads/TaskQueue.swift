/// Runs pieces of work one after another, in the order of their requests.
package actor TaskQueue {
    private var last: Task<Void, Never>?

    package init() {}

    /// Runs `body` when all work that was requested before has ended.
    ///
    /// - Throws: Errors of `body`.
    package func run<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
        let before = last
        let task = Task {
            await before?.value
            return try await body()
        }
        // Its result is handled by its own caller.
        last = Task { _ = await task.result }
        return try await task.value
    }
}
