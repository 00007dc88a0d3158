/// Runs `body`, which waits in the kernel for as long as the process lives, on a thread of its own, and returns when it
/// does.
///
/// - Parameter name: At most 15 bytes; shown by `top -H`.
package func onLongThread(named name: String, _ body: @escaping @Sendable () -> Void) async throws(SystemError) {
    let result: Result<Void, SystemError> = await withCheckedContinuation { continuation in
        do throws(SystemError) {
            try startThread(name) {
                body()
                continuation.resume(returning: .success(()))
            }
        } catch { continuation.resume(returning: .failure(error)) }
    }
    try result.get()
}
