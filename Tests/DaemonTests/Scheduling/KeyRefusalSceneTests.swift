import API
import Config
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Uploads that are refused with 401 or 403", .timeLimit(.minutes(Patience.minutes(2))))
struct KeyRefusalSceneTests {
    @Test("one refused upload of many waits alone, does not fail, and the others continue at once")
    func one() async throws {
        let scene = try await DaemonScene(retry: .milliseconds(20))
        scene.remote.set(.refuseKey, for: "bad")
        let bad = try await scene.add("bad")
        try await eventually("the upload has been refused") { scene.remote.began.contains("bad") }
        var others: [String] = []
        for number in 0..<5 {
            // No hold of fifteen minutes delays them.
            others.append(try await scene.add("\(number)"))
            try await scene.reach(.completed, others)
            let before = scene.remote.began.count { $0 == "bad" }
            _ = try await scene.daemon.retry(Selection(ids: [bad]))
            try await eventually("the upload has been refused again") {
                scene.remote.began.count { $0 == "bad" } > before
            }
        }
        try await scene.reach(.queued, [bad])
        #expect(try await scene.daemon.context.store.read { try $0.uploads.find(bad) }?.attempt == 0)
        scene.remote.letGo()
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.completed, [bad])
        try await scene.stop()
    }

    @Test("a key revoked with a thousand uploads queued holds the destination after two refusals, and none fails")
    func revoked() async throws {
        let scene = try await DaemonScene(retry: .milliseconds(20))
        scene.remote.standard = .waitOpening
        var ids: [String] = []
        for number in 0..<1000 { ids.append(try await scene.add("\(number)")) }
        try await scene.reach(.queued, Array(ids.suffix(900)))
        let running = scene.remote.began.count
        scene.remote.refuseAll()
        try await eventually("the destination is held because of its key") {
            await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        // The running uploads are accepted, and after each of them one is tried.
        #expect(scene.remote.began.count <= 2 * running + 3)
        for id in ids {
            #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.state != .failed)
        }
        scene.remote.letGo()
        _ = try await scene.daemon.reload()
        try await scene.reach(.completed, ids)
        for id in ids { #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.attempt == 0) }
        try await scene.stop()
    }

    @Test(
        "an upload refused alone does not probe the key while another may run, but does if all others are held",
        arguments: [false, true])
    func probe(othersAreHeld: Bool) async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(retry: .seconds(1), clocks: clocks)
        func tried(_ name: FilePath) -> Int { scene.remote.began.count { $0 == name } }
        scene.remote.set(.refuseKey, for: "bad")
        let bad = try await scene.add("bad")
        try await eventually("the upload has been refused") { tried("bad") == 1 }
        // The key may have been corrected: this upload is tried at once after another was accepted.
        try await scene.reach(.completed, [try await scene.add("good")])
        try await eventually("the upload has been refused a second time") { tried("bad") == 2 }
        try await scene.reach(.queued, [bad])
        scene.remote.standard = .refuseKey
        for name in ["one", "two"] { _ = try await scene.add(name, in: "solo") }
        try await eventually("the destination is held because of its key") {
            guard await scene.isIdle else { return false }
            return await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        if othersAreHeld { _ = try await scene.daemon.pause(Selection(folder: "solo")) }
        let before = scene.remote.began.count
        while scene.remote.began.count == before {
            try await eventually("the scheduler waits") {
                scene.daemon.signals.scheduling.isWaiting || scene.remote.began.count > before
            }
            clocks.advance(by: .seconds(30))
            scene.daemon.signals.scheduling.signal()
        }
        #expect((scene.remote.began[before] == "bad") == othersAreHeld, "\(scene.remote.began)")
        try await scene.stop()
    }

    @Test(
        "a held destination is probed with an upload that it has not refused, whatever the order of the queue",
        arguments: [UploadOrdering.newestFirst, .largestFirst], [false, true])
    func othersFirst(_ order: UploadOrdering, byHand: Bool) async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(retry: .seconds(5), clocks: clocks) { settings in
            // One after the other: a good one that began between the two would show that the key is not at fault.
            (settings.policy.order, settings.policy.perDestination) = (order, 1)
        }
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        var good: [String] = []
        for number in 0..<6 { good.append(try await scene.add("good \(number)", size: 10)) }
        var bad: [String] = []
        for name in ["bad", "worse"] {
            scene.remote.set(.refuseKey, for: FilePath(name))
            bad.append(try await scene.add(name, size: 100))
        }
        try await scene.reach(.queued, good + bad)
        _ = try await scene.daemon.resume(Selection(destination: "nas"))
        try await eventually("the destination is held because of its key") {
            guard await scene.isIdle else { return false }
            return await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        #expect(Set(scene.remote.began) == ["bad", "worse"])
        if byHand { _ = try await scene.daemon.resume(Selection(destination: "nas")) }
        func areThere() async throws -> Bool {
            for id in good where try await scene.state(id) != .completed { return false }
            return true
        }
        while try await !areThere() {
            try await eventually("the scheduler waits, and no upload runs") {
                guard await scene.isIdle else { return false }
                return scene.daemon.signals.scheduling.isWaiting
            }
            if try await areThere() { break }
            clocks.advance(by: .seconds(10))
            scene.daemon.signals.scheduling.signal()
        }
        #expect(scene.remote.began[2].display.hasPrefix("good"), "\(scene.remote.began)")
        // Once a key is accepted, the refused ones are tried at once: it may have been corrected.
        #expect(scene.remote.began.count { !$0.display.hasPrefix("good") } <= 6, "\(scene.remote.began)")
        try await scene.stop()
    }

    @Test("an upload refused alone does not probe a destination that fails while another waits")
    func probeOfFailing() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(retry: .seconds(1), clocks: clocks) { $0.policy.order = .largestFirst }
        scene.remote.set(.refuseKey, for: "bad")
        let bad = try await scene.add("bad", size: 100)
        try await eventually("the upload has been refused") { scene.remote.began == ["bad"] }
        try await scene.reach(.completed, [try await scene.add("good")])
        try await eventually("the upload has been refused a second time") {
            scene.remote.began.count { $0 == "bad" } == 2
        }
        try await scene.reach(.queued, [bad])
        scene.remote.standard = .fail(.holdDestination(after: nil))
        for name in ["one", "two"] { _ = try await scene.add(name, size: 10) }
        try await eventually("the destination is held because it fails") {
            guard await scene.isIdle else { return false }
            return await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .destination
        }
        let before = scene.remote.began.count
        while scene.remote.began.count < before + 5 {
            let count = scene.remote.began.count
            try await eventually("the scheduler waits") {
                scene.daemon.signals.scheduling.isWaiting || scene.remote.began.count > count
            }
            clocks.advance(by: .seconds(30))
            scene.daemon.signals.scheduling.signal()
        }
        #expect(!scene.remote.began[before...].contains("bad"), "\(scene.remote.began)")
        try await scene.stop()
    }

    @Test(
        "two uploads that were refused alone are retried, by time and by command",
        arguments: [false, true])
    func both(byHand: Bool) async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(retry: .seconds(1), clocks: clocks)
        func tried(_ name: FilePath) -> Int { scene.remote.began.count { $0 == name } }
        var bad: [String] = []
        for name in ["bad", "worse"] {
            scene.remote.set(.refuseKey, for: FilePath(name))
            bad.append(try await scene.add(name))
            try await eventually("the upload has been refused") { tried(FilePath(name)) == 1 }
            try await scene.reach(.completed, [try await scene.add("good \(name)")])
            try await eventually("the upload has been refused a second time") { tried(FilePath(name)) == 2 }
            try await scene.reach(.queued, [bad[bad.count - 1]])
            // Another upload is accepted after that, so the key is not at fault.
            try await scene.reach(.completed, [try await scene.add("more \(name)")])
        }
        // No upload was accepted in between, so the key may be at fault.
        _ = try await scene.daemon.retry(Selection(ids: bad))
        try await eventually("each upload has been refused again: \(scene.remote.began.map(\.display))") {
            tried("bad") > 2 && tried("worse") > 2 ? await scene.isIdle : false
        }
        try await eventually("the destination is held because of its key") {
            await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        scene.remote.letGo()
        if byHand { _ = try await scene.daemon.resume(Selection(destination: "nas")) }
        func areThere() async throws -> Bool {
            for id in bad where try await scene.state(id) != .completed { return false }
            return true
        }
        while try await !areThere() {
            try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
            clocks.advance(by: byHand ? .milliseconds(100) : .seconds(30))
            scene.daemon.signals.scheduling.signal()
        }
        try await scene.stop()
    }

    @Test(
        "uploads that a wrong key has held are sent at once when another upload is accepted with the corrected key",
        arguments: [1, 2])
    func corrected(_ count: Int) async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .refuseKey
        var held: [String] = []
        for number in 0..<count { held.append(try await scene.add("\(number)")) }
        try await eventually("the destination is held because of its key") {
            guard await scene.isIdle, scene.remote.began.count >= count else { return false }
            return await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        scene.remote.letGo()
        try await scene.reach(.completed, [try await scene.add("new")])
        try await scene.reach(.completed, held)
        try await scene.stop()
    }

    @Test("`resume` and `retry` of one refused upload try that one first", arguments: [false, true])
    func byID(isRetry: Bool) async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .refuseKey
        let held = [try await scene.add("first"), try await scene.add("second")]
        try await eventually("both uploads have been refused") {
            guard await scene.isIdle, Set(scene.remote.began).count == 2 else { return false }
            return await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        let before = scene.remote.began.count
        scene.remote.set(.take, for: "second")
        let selection = Selection(ids: [held[1]])
        _ = isRetry ? try await scene.daemon.retry(selection) : try await scene.daemon.resume(selection)
        try await scene.reach(.completed, [held[1]])
        #expect(scene.remote.began[before] == "second", "\(scene.remote.began)")
        try await scene.stop()
    }

    @Test("`resume` while an attempt runs is not lost: when the attempt is refused, the upload is tried again")
    func commanded() async throws {
        let scene = try await DaemonScene(clocks: ManualClocks())
        scene.remote.standard = .waitRefusing
        _ = try await scene.add("a")
        try await eventually("the attempt is running") { scene.remote.waiting.count == 1 }
        _ = try await scene.daemon.resume(Selection(destination: "nas"))
        scene.remote.refuseAll()
        try await eventually("the upload is tried again") { scene.remote.began.count == 2 }
        // No command came since: the second refusal is left alone.
        try await eventually("the destination is held because of its key") {
            guard await scene.isIdle else { return false }
            return await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        #expect(scene.remote.began.count == 2)
        try await scene.stop()
    }
}
