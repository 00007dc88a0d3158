internal import Core
internal import Linux
internal import Store

/// Asks the files of waiting uploads what the conditions of a new configuration ask. Until a file is asked, each rule
/// that asks counts it as unknown.
struct WaitingFileQuestions: Sendable {
    let context: Context
    let stateHealth: StateHealth
    /// Wakes it: a configuration is in force.
    let signal: AsyncSignal

    func run() async throws {
        while !Task.isCancelled {
            do {
                while try await context.store.askWaitingFiles() { try Task.checkCancellation() }
                await signal.wait()
            } catch let error as StoreError {
                stateHealth.failed(error)
                try await Alarms.shared.sleep(for: .seconds(5))
            }
        }
    }
}
