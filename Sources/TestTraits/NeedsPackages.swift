internal import TestKit
package import Testing

/// A trait for tests that run third-party programs, which ``Tools`` downloads from an index of packages on first use.
/// If the index does not answer, such a test is skipped with a message.
package struct NeedsPackages: SuiteTrait, TestTrait {
    package let isRecursive = true
}

// Older versions of Swift Testing have no scopes: there such a test fails if the index does not answer.
#if compiler(>=6.1)
    extension NeedsPackages: TestScoping {
        package func provideScope(
            for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
        ) async throws {
            do { try await function() } catch let error as Tools.Unreachable {
                #if compiler(>=6.3)
                    try Test.cancel("\(error)")
                #else
                    throw error
                #endif
            }
        }
    }
#endif

extension Trait where Self == NeedsPackages {
    /// Skips the test if the index of packages does not answer.
    package static var needsPackages: Self { Self() }
}
