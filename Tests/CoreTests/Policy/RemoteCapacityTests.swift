import Core
import Testing

@Suite("Free space at a destination")
struct RemoteCapacityTests {
    static let now = WallTime(milliseconds: 1_000_000)
    static let clock = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private func capacity(_ space: RemoteSpace?, underWay: [Int64] = []) -> RemoteCapacity {
        var capacity = RemoteCapacity()
        capacity.update(space, underWay: underWay, now: Self.now, monotonic: Self.clock, lasting: .seconds(300))
        return capacity
    }

    private func waiting(_ missing: Int64, in capacity: RemoteCapacity) -> RemoteCapacity {
        var capacity = capacity
        capacity.setWaiting(RemoteCapacity.Waiting(id: "1", name: "long.mp4", missing: missing, since: Self.now))
        return capacity
    }

    @Test("free space follows from the reported values, and unreported ones are unknown")
    func left() {
        #expect(RemoteSpace(free: 5, used: 1, limit: 100).left == 5)
        #expect(RemoteSpace(used: 30, limit: 100).left == 70)
        #expect(RemoteSpace(used: 130, limit: 100).left == 0)
        #expect(RemoteSpace(used: 30).left == nil)
        #expect(RemoteSpace(limit: 100).left == nil)
        #expect(RemoteSpace(.files, used: 3, limit: 25).left == 22)
    }

    @Test("free space is described in words")
    func words() {
        #expect(
            RemoteSpace(free: 1_200_000_000, used: 8_800_000_000, limit: 10_000_000_000).text
                == "1.2 GB free, 8.8 GB of 10.0 GB used")
        #expect(RemoteSpace(.files, used: 1).text == "1 file used")
        #expect(RemoteSpace(.files, used: 24, limit: 25).text == "1 file free, 24 files of 25 files used")
        #expect(RemoteSpace(limit: 1000).text == "1.0 kB in all")
        #expect(RemoteSpace().text == "")
    }

    @Test("running and starting uploads have their space first")
    func promised() {
        var capacity = capacity(RemoteSpace(free: 1000), underWay: [300, 200, -5])
        #expect(capacity.left == 500)
        capacity.reserve(missing: [400])
        #expect(capacity.left == 100)
        capacity.reserve(missing: [400])
        #expect(capacity.left == 0)
        #expect(self.capacity(nil, underWay: [300]).left == nil)
        #expect(self.capacity(RemoteSpace(used: 3)).left == nil)
        #expect(self.capacity(RemoteSpace(free: .max), underWay: [.max, .max]).left == 0)
    }

    @Test("if files are counted, one more fits or none does")
    func files() {
        var capacity = capacity(RemoteSpace(.files, free: 2), underWay: [100])
        #expect(capacity.left == nil)
        capacity.reserve(missing: [1])
        #expect(capacity.left == -1)
        capacity = waiting(0, in: capacity)
        #expect(
            capacity.hold(at: "nas", missing: 0, name: "a.mp4")?.text
                == "2 files free at nas, and as many are being uploaded, and a.mp4 needs one more")
    }

    @Test("space is queried before the first upload, when the answer is old, and when space may have been freed")
    func due() {
        #expect(RemoteCapacity().isDue(at: Self.clock))
        var capacity = capacity(RemoteSpace(free: 5))
        #expect(!capacity.isDue(at: Self.clock.advanced(by: .seconds(299))))
        #expect(capacity.isDue(at: Self.clock.advanced(by: .seconds(300))))
        capacity.markStale()
        #expect(capacity.isDue(at: Self.clock))
    }

    @Test("no timer runs while no upload waits for space")
    func wakes() {
        let capacity = capacity(RemoteSpace(free: 5))
        #expect(capacity.nextCheck == nil)
        #expect(waiting(6, in: capacity).nextCheck == Self.clock.advanced(by: .seconds(300)))
    }

    @Test("a completed upload frees no space; an abandoned one may, and so may a double count")
    func ends() {
        var capacity = waiting(900, in: capacity(RemoteSpace(free: 500)))
        capacity.ended(hasArrived: true)
        #expect(!capacity.isDue(at: Self.clock))
        capacity.ended(hasArrived: false)
        #expect(capacity.isDue(at: Self.clock))
        capacity = waiting(900, in: self.capacity(RemoteSpace(free: 1000), underWay: [500]))
        capacity.ended(hasArrived: true)
        #expect(capacity.isDue(at: Self.clock))
        capacity = self.capacity(RemoteSpace(free: 1000), underWay: [500])
        capacity.ended(hasArrived: false)
        #expect(!capacity.isDue(at: Self.clock), "no upload waits")
    }

    @Test("an upload that does not fit is held with reason, start and next query; one that fits is not held")
    func hold() {
        var capacity = waiting(900, in: capacity(RemoteSpace(free: 500)))
        let later = Self.now.advanced(by: .seconds(60))
        capacity.setWaiting(RemoteCapacity.Waiting(id: "2", name: "other.mp4", missing: 800, since: later))
        #expect(
            capacity.hold(at: "nas", missing: 800, name: "other.mp4")
                == Hold(
                    .quota, since: Self.now, until: Self.now.advanced(by: .seconds(300)),
                    text: "500 B free at nas, and other.mp4 needs 800 B; uploads that fit continue"))
        #expect(capacity.hold(at: "nas", missing: 500, name: "small.mp4") == nil)
        capacity = waiting(900, in: self.capacity(RemoteSpace(free: 1000), underWay: [500]))
        #expect(
            capacity.hold(at: "nas", missing: 900, name: "a")?.text
                == "1.0 kB free at nas, 500 B of that for running uploads, and a needs 900 B; uploads that fit continue"
        )
        capacity.setWaiting(nil)
        #expect(capacity.hold(at: "nas", missing: 900, name: "a") == nil)
    }

    @Test("the reset time of a remote quota is shown")
    func resets() {
        let tomorrow = Self.now.advanced(by: .seconds(86_400))
        let capacity = waiting(900, in: capacity(RemoteSpace(free: 0, resetsAt: tomorrow)))
        #expect(capacity.hold(at: "nas", missing: 900, name: "a")?.until == tomorrow)
    }
}
