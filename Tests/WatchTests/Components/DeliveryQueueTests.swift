import Core
import Testing

@testable import Watch

@Suite("DeliveryQueue")
struct DeliveryQueueTests {
    let trees = Trees()

    private func names(_ delivery: Mailbox.Delivery?) -> [FilePath] {
        switch delivery {
        case .settled(let files)?, .skipped(let files)?: files.map(\.relative)
        case .scanned(let folders)?: folders.map { FilePath($0) }
        case nil: []
        }
    }

    @Test("the next delivery starts only after the last was confirmed")
    func oneAtATime() {
        var queue = DeliveryQueue(limit: 2)
        #expect(queue.next() == nil)
        for name: FilePath in ["a", "b", "c"] { queue.addSettled(trees.settled(name), at: trees.place(name)) }
        #expect(names(queue.next()) == ["a", "b"])
        #expect(queue.next() == nil)
        queue.confirm()
        #expect(names(queue.next()) == ["c"])
        #expect(queue.isBusy)
        queue.confirm()
        #expect(queue.next() == nil)
    }

    @Test("the queue has no free slot when a whole delivery waits, and counts settled files")
    func slots() {
        var queue = DeliveryQueue(limit: 2)
        #expect(queue.freeSlots == 2)
        queue.addSettled(trees.settled("a"), at: trees.place("a"))
        queue.addSettled(trees.settled("b"), at: trees.place("b"))
        #expect(queue.freeSlots == 0)
        _ = queue.next()
        #expect(queue.freeSlots == 2)
        #expect(queue.settledCount(of: "cam") == 2 && queue.settledCount(of: "other") == 0)
    }

    @Test("a file that settled twice is delivered once")
    func twice() {
        var queue = DeliveryQueue(limit: 8)
        queue.addSettled(trees.settled("a"), at: trees.place("a"))
        queue.addSettled(trees.settled("b"), at: trees.place("b"))
        queue.addSettled(trees.settled("a"), at: trees.place("a"))
        #expect(names(queue.next()) == ["b", "a"])
    }

    @Test("reports are delivered before settled files, skipped files in pieces, and scanned folders together")
    func reports() {
        var queue = DeliveryQueue(limit: 2)
        queue.addSettled(trees.settled("a"), at: trees.place("a"))
        queue.addSkipped([trees.settled("x"), trees.settled("y"), trees.settled("z")])
        queue.addScanned([])
        queue.addScanned(["one"])
        queue.addScanned(["two", "three"])
        var deliveries: [[FilePath]] = []
        while let delivery = queue.next() {
            deliveries.append(names(delivery))
            queue.confirm()
        }
        #expect(deliveries == [["x", "y"], ["z"], ["one", "two", "three"], ["a"]])
    }

    @Test("settled files of a dropped root, or without a matching rule, are dropped")
    func dropped() {
        let other = Trees()
        var queue = DeliveryQueue(limit: 8)
        queue.addSettled(trees.settled("a"), at: trees.place("a"))
        queue.addSettled(trees.settled("b"), at: trees.place("b"))
        queue.addSettled(other.settled("c"), at: other.place("c"))
        queue.keepSettled { place, _ in place.name != "b" }
        queue.drop(trees.root)
        #expect(names(queue.next()) == ["c"])
    }
}
