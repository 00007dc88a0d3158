import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("Phases of the daemon")
struct LifecycleTests {
    @Test("requests are refused until the start has finished, and a stop is final")
    func phases() throws {
        let lifecycle = DaemonPhase(startedAt: WallTime(milliseconds: 0))
        #expect(lifecycle.isStarting)
        #expect { try lifecycle.requireReady() } throws: { ($0 as? Refusal)?.code == .unavailable }
        lifecycle.finishStart()
        try lifecycle.requireReady()
        #expect(!lifecycle.isStopping)
        lifecycle.beginStop()
        #expect(lifecycle.isStopping)
    }
}

@Suite("A state that cannot be written")
struct StateHealthTests {
    @Test("a state that cannot be written is reported once, until a commit succeeds")
    func once() async throws {
        let scene = try await ComponentScene()
        let health = scene.parts.stateHealth
        let error = StoreError(code: 10, message: "disk I/O error", sql: "")
        health.failed(error)
        let hold = try #require(scene.parts.troubles["state"])
        scene.clocks.advance(by: .seconds(5))
        health.failed(error)
        #expect(scene.parts.troubles["state"]?.since == hold.since)
        #expect(scene.parts.troubles.count("state") == 2)
        health.committed()
        #expect(scene.parts.troubles["state"] == nil)
    }

    @Test("only an error of the state shows that it cannot be written")
    func kinds() async throws {
        let health = try await ComponentScene().parts.stateHealth
        health.noteFailure(SystemError(call: "open", subject: "a", code: 13))
        #expect(!health.isFailing)
        health.noteFailure(StoreError(code: 10, message: "disk I/O error", sql: ""))
        #expect(health.isFailing)
        health.committed()
        #expect(!health.isFailing)
    }
}

@Suite("Folders that are watched for the first time")
struct FirstWatchTests {
    @Test("existing files are ignored only in new folders with `existing: skip`, until the first scan")
    func skipping() async throws {
        let scene = try await ComponentScene { $0.folders[0].watch.existing = .skip }
        let firstWatch = NewFolders(store: scene.store)
        let settings = scene.parts.settings
        firstWatch.replace(try await firstWatch.find(in: settings))
        #expect(firstWatch.skipping(settings) == ["cam"])
        try await firstWatch.recordScan(of: ["cam"])
        #expect(try await firstWatch.find(in: settings) == ["door"])
    }

    @Test("the scan of a previously watched folder is not recorded")
    func known() async throws {
        let scene = try await ComponentScene()
        let firstWatch = NewFolders(store: scene.store)
        firstWatch.replace(["door"])
        try await firstWatch.recordScan(of: ["cam"])
        #expect(try await firstWatch.find(in: scene.parts.settings) == ["cam", "door"])
    }
}

@Suite("End of a --once run")
struct OnceRunTests {
    private static let last = MonotonicTime(nanoseconds: 100_000_000_000)

    private static func mayProgress(settling: Int, young: Int, next: MonotonicTime?) -> Bool {
        var state = WatchState(folder: "cam", path: "/cam", condition: .watching)
        state.settling = settling
        state.belowMinAge = WatchState.Young(files: young, next: next)
        return OnceRun.mayProgress([state], by: last)
    }

    @Test("a run waits for a changing file, and for a file that is too recent only if it reaches its age in time")
    func files() {
        #expect(!Self.mayProgress(settling: 0, young: 0, next: nil))
        #expect(Self.mayProgress(settling: 1, young: 0, next: nil))
        #expect(Self.mayProgress(settling: 1, young: 1, next: Self.last))
        #expect(!Self.mayProgress(settling: 1, young: 1, next: Self.last.advanced(by: .seconds(1))))
    }
}
