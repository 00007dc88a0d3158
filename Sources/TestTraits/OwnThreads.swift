internal import Linux
package import Testing

/// A trait for tests that compute for seconds, or wait for a program, without a suspension: they run on threads of
/// their own. Swift's thread pool has as many threads as the machine has cores, so two such tests on a small machine
/// would stop all others, whose servers and clients would then miss their limits of time.
///
/// Not for tests that call an actor with an executor of its own, like the store: with Swift 6.3 such a call does not
/// return. They suspend while the actor works, so they stop no others.
package struct OwnThreads: SuiteTrait, TestTrait {
    package let isRecursive = true

    fileprivate final class Executor: TaskExecutor {
        static let shared = Executor()
        private init() {}
        private let workers = Workers<UnownedJob>("own threads", most: 64, linger: .seconds(5)) {
            $0.runSynchronously(on: Executor.shared.asUnownedTaskExecutor())
        }

        func enqueue(_ job: consuming ExecutorJob) { workers.add(UnownedJob(job)) }
    }
}

// Older versions of Swift Testing have no scopes: there the tests share the pool.
#if compiler(>=6.1)
    extension OwnThreads: TestScoping {
        package func provideScope(
            for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
        ) async throws {
            try await withTaskExecutorPreference(Executor.shared) { try await function() }
        }
    }
#endif

extension Trait where Self == OwnThreads {
    /// Runs the test on threads of its own: it computes or waits for long without a suspension.
    package static var ownThreads: Self { Self() }
}
